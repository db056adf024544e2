"""Makes tables 7.1 to 7.4: vNET's means over the repetitions with their intervals, beside the
printed values.
"""

from __future__ import annotations

from reports.numbers import plain
from reports.papers.ccc_2011 import beyond, classes, early, missed, serial
from reports.papers.ccc_2011.intervals import (
    AFTER,
    DROPPED,
    FLOWS,
    MISSED,
    SENT,
    interval_metrics,
    intervals,
    label,
    printed,
    text_of,
    works,
)
from reports.papers.paper import Table
from reports.study import Study

# Number -> metric, key of reference.yaml, whether the gateways cooperate, caption
TABLES = {
    "7.1": (MISSED, "deadline_missed_percent", False, "deadlines missed, without cooperation"),
    "7.2": (MISSED, "deadline_missed_percent", True, "deadlines missed, with cooperation"),
    "7.3": (DROPPED, "overflow_dropped_percent", False, "dropped from full queues, without cooperation"),
    "7.4": (DROPPED, "overflow_dropped_percent", True, "dropped from full queues, with cooperation"),
}
VICTIMS = ("a-be", "b-be", "a-lrt", "b-lrt")
Found = dict[tuple[bool, str, str, str], list[float]]


def found(study: Study) -> Found:
    """Returns the values of all repetitions by (whether the gateways cooperate, metric, flow, interval)."""
    values: Found = {}
    for cell in study.cells:
        for m in interval_metrics(cell.run):
            key = (works(cell), m.name, str(m.of.traffic_class), str(m.of.event))
            values.setdefault(key, []).append(m.value)
    return values


def tables(study: Study) -> tuple[Table, ...]:
    """Returns those of tables 7.1 to 7.4 that have measured values, a table with the rates of the slowed
    senders if there are runs with cooperation, and the tables beyond the paper.
    """
    values = found(study)
    made = [
        _table(number, values)
        for number, (name, _, cooperates, _) in TABLES.items()
        if _any(values, cooperates, name)
    ]
    victims = [_victims(values)] if _any(values, True, SENT) else []
    lines = [serial.table()] if made else []
    return (
        *made,
        *victims,
        *classes.tables(study),
        *lines,
        *beyond.tables(study),
        *missed.tables(study),
        *early.tables(study),
    )


def _any(values: Found, works: bool, name: str) -> bool:
    return any(key[:2] == (works, name) for key in values)


def _table(number: str, values: Found) -> Table:
    name, words, works, caption = TABLES[number]
    rows = []
    for flow in FLOWS:
        row = [flow.upper()]
        for interval, paper in zip(
            intervals(), printed(words, "with" if works else "without", flow), strict=True
        ):
            row += [text_of(values.get((works, name, flow, label(interval)))), plain(paper)]
        rows.append((*row, text_of(values.get((works, name, flow, label(AFTER))))))
    head = ["% of the packets sent"]
    for interval in intervals():
        head += [label(interval), "paper"]
    ends = f"Table {number}. {caption[0].upper()}{caption[1:]}; the last column is after the broker's answer."
    return Table("", ends, (*head, label(AFTER)), tuple(rows), printed=(2, 4, 6, 8, 10))


def _victims(values: Found) -> Table:
    rows = [
        (
            flow.upper(),
            *(text_of(values.get((True, SENT, flow, label(one)))) for one in (*intervals(), AFTER)),
        )
        for flow in VICTIMS
    ]
    head = ("packets sent a second", *(label(one) for one in (*intervals(), AFTER)))
    caption = "Rates of the victims with cooperation. Minimum: 2.3 (best effort), 10 a second."
    return Table("", caption, head, tuple(rows))
