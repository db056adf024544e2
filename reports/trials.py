"""Makes the table of RFC 2544 results: a row for each frame size, with the limit of its throughput."""

from __future__ import annotations

from typing import Any

import polars as pl

from capture.trials import label
from reports.metrics.metric import Of
from reports.numbers import plus_minus
from reports.study import Study

RFC = "RFC 2544: Benchmarking Methodology for Network Interconnect Devices"
Row = tuple[str, ...]
COLUMNS = {
    "throughput": "throughput, frames/s",
    "throughput_bits": "Mbit/s",
    "throughput_of_line": "% of line",
    "latency_tagged": "tagged latency, µs",
    "latency_p50": "p50, µs",
    "latency_p99": "p99, µs",
    "frame_loss": "loss at highest load, %",
    "back_to_back": "back-to-back, frames",
}
BOUNDED = ("throughput", "throughput_bits", "throughput_of_line", "back_to_back")
LIMITS = {"line": "line rate", "path": "path", "tester": "tester", "length": "its length"}


def of_trials(study: Study) -> bool:
    """Returns whether a run of the study has a table of RFC 2544 trials."""
    return any(cell.run.table("trials") is not None for cell in study.cells)


def trial_rows(study: Study) -> list[Row]:
    """Returns the header, then a row for each stream and frame size and, if there are several, each
    condition.
    """
    table = study.compared.filter(pl.col("name").is_in(list(COLUMNS)))
    sizes = table.select("stream", "frame_bytes").unique().sort("stream", "frame_bytes").rows()
    streams, several = len({stream for stream, _ in sizes}), table.get_column("series").n_unique() > 1
    rows: list[Row] = [("frame size", *(["condition"] if several else []), *COLUMNS.values(), "limited by")]
    for stream, size in sizes:
        of = Of(stream=stream, frame_bytes=size)
        for series in study.series:
            same = (pl.col("stream") == stream) & (pl.col("frame_bytes") == size)
            found = table.filter(same & (pl.col("series") == series))
            if not found.is_empty():
                cells = [_text(study, found, series, of, name) for name in COLUMNS]
                condition = [series] if several else []
                words = [LIMITS.get(w, w) for w in limits(study, series, of, "throughput")]
                rows.append((label(stream, size, streams), *condition, *cells, ", ".join(words) or "-"))
    return rows


def limits(study: Study, series: str, of: Of, name: str) -> list[str]:
    """Returns the words for the limits (line, path, tester or burst length) that ended the searches for this
    metric in the runs of a series, each once.
    """
    words = [
        word
        for cell in study.cells
        if cell.series == series
        for m in cell.metrics
        if m.name == name and m.of == of
        for word in m.limits
    ]
    return list(dict.fromkeys(words))


def _text(study: Study, found: pl.DataFrame, series: str, of: Of, name: str) -> str:
    """Returns the value with its interval, after "≥" if the tester or the burst length limited the search;
    "-" without a value.
    """
    rows = found.filter(pl.col("name") == name)
    if rows.is_empty():
        return "-"
    row = rows.row(0, named=True)
    searched = "back_to_back" if name == "back_to_back" else "throughput"
    more = name in BOUNDED and not {"tester", "length"}.isdisjoint(limits(study, series, of, searched))
    return ("≥ " if more else "") + plus_minus(row["value"], row["low"], row["high"])


def searches(study: Study) -> list[dict[str, Any]]:
    """Returns the result of each throughput and back-to-back search of each run, with the numbers of its
    trials: all, passed, and those that the tester limited.
    """
    found = []
    for cell in study.cells:
        findings, trials = cell.run.table("findings"), cell.run.table("trials")
        if findings is None or trials is None:
            continue
        for row in findings.filter(pl.col("test").is_in(["throughput", "back-to-back"])).iter_rows(
            named=True
        ):
            same = [pl.col(key) == row[key] for key in ("stream", "test", "size", "repetition")]
            words = trials.filter(*same).get_column("verdict")
            counts = {word: int((words == word).sum()) for word in ("passed", "tester")}
            found.append({**row, **counts, "cell": cell.name, "trials": words.len()})
            found[-1]["limit"] = LIMITS.get(row["limit"], row["limit"])
    return found
