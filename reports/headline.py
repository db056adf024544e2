"""The headline table: one row a quantity, one column a condition, for the page and for the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from reports.metrics.compare import called
from reports.numbers import plus_minus
from reports.study import Study, study_of_campaign, study_of_run
from reports.trials import of_trials, trial_rows

Row = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A row of the table: its text and the metrics it may come from; the first known wins."""

    text: str
    sources: tuple[tuple[str, dict[str, str]], ...]  # name, and what it must be of


TICKS = "rough: 10 ms ticks"
LINES = (
    Line("broker CPU, % of a core", (("cpu", {"nodes": "broker"}),)),
    Line("server CPU, % of a core", (("cpu", {"nodes": "server"}),)),
    Line("receiver CPU, % of a core", (("cpu", {"nodes": "receiver"}),)),
    Line("mean sender CPU, % of a core", (("cpu", {"nodes": "sender"}), ("cpu", {"nodes": "client"}))),
    Line("machine busy, %", (("host_busy", {"machine": "outer"}), ("host_busy", {"machine": "lab"}))),
    Line("broker receives, kB/s", (("received", {"nodes": "broker"}),)),
    Line("broker sends, kB/s", (("sent", {"nodes": "broker"}),)),
    Line("latency p50, ms", (("latency_p50", {}),)),
    Line("latency p99, ms", (("latency_p99", {}),)),
    Line("latency max, ms", (("latency_max", {}),)),
    Line("messages scheduled", (("messages_scheduled", {}),)),
    Line("messages received", (("messages_received", {}),)),
    Line("messages lost", (("messages_lost", {}),)),
    Line("messages duplicated", (("messages_duplicated", {}),)),
    Line("messages reordered", (("messages_reordered", {}),)),
    Line("promise held", (("promise_held", {}),)),
    Line("packets with payload, %", (("goodput_packets", {}),)),
    Line("bytes that are TCP payload, %", (("goodput_bytes", {}),)),
    Line("protocol overhead, % of bytes", (("overhead", {}),)),
)


def headline(directory: Path) -> list[Row]:
    """The table of a run or campaign directory; the first row is the header."""
    campaign = (directory / "cells.jsonl").exists()
    return headline_rows(study_of_campaign(directory) if campaign else study_of_run(directory))


def headline_rows(study: Study) -> list[Row]:
    """Rows of text: the header, then every line that at least one condition has a value for.

    Of trials after RFC 2544: a row a frame size instead.
    """
    if of_trials(study):
        return trial_rows(study)
    table = study.compared
    conditions = conditions_of(study)
    one = len(study.scenarios) == 1
    header = ["with 95 % intervals"]
    header += [series if one else f"{scenario}, {series}" for scenario, series in conditions]
    rows = [tuple(header)]
    ticked = any(cell.run.ticked for cell in study.cells)
    for line in LINES:
        cells = [_text(line, table, scenario, series) for scenario, series in conditions]
        if any(cells):
            rows.append((_label(line, ticked), *(c or "-" for c in cells)))
    return rows


def _label(line: Line, ticked: bool) -> str:
    """The row's text; CPU that was counted in ticks says so wherever the table stands."""
    return f"{line.text} ({TICKS})" if ticked and line.sources[0][0] == "cpu" else line.text


def conditions_of(study: Study) -> list[tuple[str, str]]:
    """Scenario and series of every column."""
    return list(dict.fromkeys((c.scenario, c.series) for c in study.cells))


def as_text(rows: list[Row]) -> str:
    """The table in aligned columns, for a terminal."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))
        )
        for r in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _text(line: Line, table: pl.DataFrame, scenario: str, series: str) -> str:
    rows = table.filter((pl.col("scenario") == scenario) & (pl.col("series") == series))
    for name, of in line.sources:
        found = rows.filter(called(name, **of))
        if not found.is_empty():
            return _cell(line, found.row(0, named=True), found.item(0, "repetitions"))
    return ""


def _cell(line: Line, row: dict[str, float], repetitions: int) -> str:
    if line.text == "promise held":
        held = round(row["value"] * repetitions)
        return ("held" if held else "broken") if repetitions == 1 else f"held in {held} of {repetitions}"
    return plus_minus(row["value"], row["low"], row["high"])
