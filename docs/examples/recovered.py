"""Figures of published examples that stand on their pages, and not in their tables of metrics.

Examples of earlier versions keep what a paper's own module measures only as cells of the page or of a
figure's table. A figure is as exact as it is shown there; a cell without an interval has none.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import published

from reports.metrics.metric import OF, Of
from reports.papers.industrial_ethernet_substation.delays import ALONE, FTP
from reports.papers.industrial_ethernet_substation.tables import NAMES

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


# The tables of delays by the scenario: their captions begin so and end with the series.
OF_SUBSTATIONS = {"flat": "Figure 3.", "bays": "Figures 5 to 7."}
DELAYS = {"mean": "mean", "99 %": "p99", "largest": "max"}


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
    scenario = example.removeprefix("substation-")
    streams = {title: stream for stream, title in NAMES.items()}
    loads = {"no files": ALONE, "beside files": FTP}
    for series in _series(example):
        head, *body = published.table(example, f"{OF_SUBSTATIONS[scenario]} ... {series}")
        for cells in body:
            title, _, load = cells[0].rpartition(", ")
            for column, name in DELAYS.items():
                if (value := shown(cells[head.index(column)])) is not None:
                    of = Of(traffic_class=streams[title])
                    yield _row(scenario, series, f"{loads[load]}_delay_{name}", of, "us", value)


def _series(example: str) -> list[str]:
    """The series of the example's table of delays."""
    packed = HERE / example / "report/tables/delays.csv.gz"
    with gzip.open(packed, "rt", encoding="utf-8") as text:
        return sorted({line["series"] for line in csv.DictReader(text)})


READERS: dict[str, Callable[[str], Iterator[tuple[object, ...]]]] = {
    "ccc-2011": _ccc,
    "interaction-models": _models,
    "substation-flat": _substation,
    "substation-bays": _substation,
}
