"""Makes tables VI and VII, measured beside printed, and a table of figures that explain the differences."""

from __future__ import annotations

from collections.abc import Sequence

from reports.claims.evidence import Evidence
from reports.numbers import plain, plus_minus
from reports.papers.paper import Table
from reports.papers.vnet_2014_models.evidence import MODELS, NETWORKS, evidence, measured, printed
from reports.study import Study

# the paper's row of table VI -> the figure of claims.yaml, and the key of reference.yaml
ROWS = {
    "utility data, MB": ("sent", "utility_data_mbytes"),
    "consumer data, MB": ("answered", "consumer_data_mbytes"),
    "overhead, kB": ("overhead", "overhead_kbytes"),
    "message round trip, ms": ("round_trip", "round_trip_ms"),
    "message loss, %": ("missing", "loss_percent"),
}
NONE = "none"
WHY = {
    "updates that never arrived, % of updates": "lost_there",
    "retransmitted by the utility, packets": "utility_again",
    "retransmitted by consumers, packets": "consumers_again",
    "PGM repairs, packets": "repairs",
    "overhead, % of bytes": "share",
    "bridge there, p50, ms": "hop_there",
    "bridge there, p99, ms": "hop_there_late",
    "bridge back, p50, ms": "hop_back",
    "bridge back, p99, ms": "hop_back_late",
    "lost on the bridge there, % of packets": "hop_there_lost",
    "lost on the bridge back, % of packets": "hop_back_lost",
    "largest frame, B": "largest",
}


def tables(study: Study) -> tuple[Table, ...]:
    """Returns the tables in which at least one value was measured."""
    found = evidence(study)
    made = (_table_vi(found), _table_vii(found), _evidence(found))
    return tuple(table for table in made if any({*row[1:]} - {"", NONE} for row in _measured(table)))


def _measured(table: Table) -> list[list[str]]:
    return [[cell for i, cell in enumerate(row) if i not in table.printed] for row in table.rows]


def _table_vi(found: Evidence) -> Table:
    paper = printed()["table_vi_udp"]
    rows = []
    for title, (name, key) in ROWS.items():
        row = [title]
        for network in NETWORKS:
            row += [_text(found, name, "udp_rr", network), plain(paper[network][key])]
        rows.append(tuple(row))
    head = ("UDP", "ideal", "paper", "constrained", "paper")
    caption = "Table VI. The UDP experiments; MB are 10^6 bytes. Round trips are of the answers that came."
    return Table("", caption, head, tuple(rows), printed=(2, 4))


def _table_vii(found: Evidence) -> Table:
    rows = [
        (
            f"{row['n']}. {MODELS[row['model']]}, {row['network']}",
            _text(found, "round_trip", row["model"], row["network"]),
            plain(row["round_trip_ms"]),
            _text(found, "missing", row["model"], row["network"]),
            f"{row['loss_percent']:.2f}",
        )
        for row in printed()["table_vii"]
    ]
    head = ("experiment", "round trip, ms", "paper", "message loss, %", "paper")
    caption = "Table VII. Mean round trip and loss; lost is what no answer came to before the run's end."
    return Table("", caption, head, tuple(rows), printed=(2, 4))


def _evidence(found: Evidence) -> Table:
    columns = [(model, network) for model in MODELS for network in NETWORKS]
    rows = [(title, *_texts(found, name, columns)) for title, name in WHY.items()]
    head = ("", *(f"{MODELS[model]}, {network}" for model, network in columns))
    caption = "Causes of the differences: repairs, and the same packets seen on both sides of the bridge."
    return Table("", caption, head, tuple(rows))


def _texts(found: Evidence, name: str, columns: Sequence[tuple[str, str]]) -> list[str]:
    return [_text(found, name, model, network) for model, network in columns]


def _text(found: Evidence, name: str, model: str, network: str) -> str:
    value = measured(found, name, model, network)
    if value is None:  # the run exists but has no such value, such as PGM repairs in a run of TCP
        return NONE if measured(found, "missing", model, network) else ""
    return plus_minus(value.value, value.low, value.high)
