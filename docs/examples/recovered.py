"""Figures of published examples that stand on their pages, and not in their tables of metrics.

Examples of earlier versions keep what a paper's own module measures only as cells of the page or of a
figure's table. A figure is as exact as it is shown there; a cell without an interval has none.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import published

from reports.metrics.metric import OF, Of

HERE = Path(__file__).resolve().parent
NUMBER = re.compile(r"^(-?[\d,]+(?:\.\d+)?)(?: ± ([\d,]+(?:\.\d+)?))?$")
Shown = tuple[float, float | None, float | None]
CCC_TABLES = {
    ("Table 7.1.", "ccc_missed"): "False",
    ("Table 7.2.", "ccc_missed"): "True",
    ("Table 7.3.", "ccc_dropped"): "False",
    ("Table 7.4.", "ccc_dropped"): "True",
    ("What the victims sent", "ccc_sent"): "True",
}
MODELS = {
    "TCP PS": "tcp publish subscribe",
    "TCP RD": "tcp router dealer",
    "PGM PS": "pgm publish subscribe",
    "UDP RR": "udp request response",
}
OF_FIGURES = {17: "utility_data", 18: "consumer_data", 19: "wire_overhead"}
OF_UDP = {
    "utility data, MB": ("utility_data", "MB"),
    "consumer data, MB": ("consumer_data", "MB"),
    "overhead, kB": ("wire_overhead", "kB"),
}


# The claims whose reasons have figures: their texts, their series, and the figures in their order.
UP, DOWN, BAY = "pisa-controller", "controller-pisa", "ct-protection"
TO_BUSBAR, FROM_BUSBAR = "ct-busbar", "busbar-cb"
Figures = tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]
OF_SUBSTATIONS: dict[str, Figures] = {
    "flat": (
        (
            "Without files the delay from the PISA to the controller is just below 0.3 ms.",
            "pisa 200 us",
            (("alone_delay_mean", UP),),
        ),
        (
            "Beside an FTP upload the delay from the PISA to the controller increases to about 0.85 ms.",
            "pisa 200 us",
            (("ftp_delay_mean", UP),),
        ),
        (
            "Beside an FTP download the delay from the controller to the PISA increases by about 50 us.",
            "pisa 200 us",
            (("alone_delay_mean", DOWN), ("ftp_delay_mean", DOWN)),
        ),
    ),
    "bays": (
        (
            "Heavy FTP traffic increases the delays within a bay by less than 20 us.",
            "pisa 100 us, busbar 20 us",
            (("alone_delay_max", BAY), ("ftp_delay_max", BAY)),
        ),
        (
            "The largest from the protection unit to the circuit breaker is about the same.",
            "pisa 100 us, busbar 20 us",
            (("alone_delay_max", "protection-cb"),),
        ),
        (
            "The largest delay from a CT/VT PISA to the busbar is about 180 us.",
            "pisa 100 us, busbar 20 us",
            (("alone_delay_max", TO_BUSBAR),),
        ),
        (
            "The largest from the busbar to a circuit breaker is about 170 us.",
            "pisa 100 us, busbar 20 us",
            (("alone_delay_max", FROM_BUSBAR),),
        ),
        (
            "Heavy FTP traffic leaves the delay to the busbar below 300 us.",
            "pisa 100 us, busbar 20 us",
            (("ftp_delay_max", TO_BUSBAR),),
        ),
        (
            "Heavy FTP traffic leaves the delay from the busbar to a circuit breaker below 300 us.",
            "pisa 100 us, busbar 20 us",
            (("ftp_delay_max", FROM_BUSBAR),),
        ),
        (
            "With slower nodes the steady state is of the same order of magnitude.",
            "pisa 200 us, busbar 25 us",
            (("alone_delay_mean", TO_BUSBAR),),
        ),
        (
            "With slower nodes the transient behaviour is very bad.",
            "pisa 200 us, busbar 25 us",
            (("alone_delay_max", TO_BUSBAR), ("ftp_delay_max", TO_BUSBAR)),
        ),
    ),
}


def shown(cell: str) -> Shown | None:
    """Value, low and high of a cell such as "8.96 ± 0.47"; None if it is no number."""
    found = NUMBER.match(cell)
    if found is None:
        return None
    value = float(found[1].replace(",", ""))
    half = found[2] and float(found[2].replace(",", ""))
    return (value, None, None) if not half else (value, value - half, value + half)


def rows(example: str) -> list[tuple[object, ...]]:
    """Rows in the columns of `reports.metrics.compare.SCHEMA`; none for an example without such a page."""
    of = READERS.get(example)
    return [] if of is None else list(of(example))


def _row(scenario: str, series: str, name: str, of: Of, unit: str, value: Shown) -> tuple[object, ...]:
    subject = (getattr(of, field) for field in OF)
    return (scenario, series, name, *subject, *value, unit, None, None, "as shown on the page")


def _ccc(example: str) -> Iterator[tuple[object, ...]]:
    for (caption, name), cooperate in CCC_TABLES.items():
        head, *body = published.table(example, caption)
        for cells in body:
            for event, cell in zip(head[1:], cells[1:], strict=False):
                if event != "paper" and (value := shown(cell)) is not None:
                    of = Of(traffic_class=cells[0].lower(), event=event)
                    yield _row("chapter 7", f"cooperate {cooperate}", name, of, "%", value)


def _models(example: str) -> Iterator[tuple[object, ...]]:
    head, *body = published.table(example, "Table VII.")
    for cells in body:
        model, network = cells[0].split(". ")[1].split(", ")
        if (value := shown(cells[head.index("message loss, %")])) is not None:
            yield _row(MODELS[model], f"network {network}", "answers_missing", Of(), "% of answers", value)
    head, *body = published.table(example, "Table VI.")
    for cells in body:
        name, unit = OF_UDP.get(cells[0], ("", ""))
        for network in ("ideal", "constrained"):
            if name and (value := shown(cells[head.index(network)])) is not None:
                yield _row(MODELS["UDP RR"], f"network {network}", name, Of(), unit, value)
    for number, name in OF_FIGURES.items():
        text = (HERE / example / f"report/tables/figure-{number}.csv").read_text(encoding="utf-8")
        for line in csv.DictReader(io.StringIO(text)):
            exact = (float(line["value"]), None, None)
            series = f"network {line['network']}"
            yield _row(MODELS[line["model"]], series, name, Of(), line["unit"], exact)


def _substation(example: str) -> Iterator[tuple[object, ...]]:
    known = {text: reason for text, _, reason in published.judged(example)}
    scenario = example.removeprefix("substation-")
    for text, series, figures in OF_SUBSTATIONS[scenario]:
        for (name, stream), number in zip(figures, re.findall(r"([\d,]+) us", known[text]), strict=False):
            exact = (float(number.replace(",", "")), None, None)
            yield _row(scenario, series, name, Of(traffic_class=stream), "us", exact)


READERS: dict[str, Callable[[str], Iterator[tuple[object, ...]]]] = {
    "ccc-2011": _ccc,
    "interaction-models": _models,
    "substation-flat": _substation,
    "substation-bays": _substation,
}
