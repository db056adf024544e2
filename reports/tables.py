"""The tables of the page; each is also written as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from reports.figures.drawing import flat
from reports.figures.proof import proofs
from reports.metrics.delivery import delivery
from reports.metrics.load import node_means
from reports.study import Study, condition

VERDICT_SCHEMA = {
    "cell": pl.String,
    "scenario": pl.String,
    "class": pl.String,
    "promise": pl.String,
    "rule": pl.String,
    "verdict": pl.String,
    "reason": pl.String,
    "expected": pl.Int64,
    "lost": pl.Int64,
    "duplicated": pl.Int64,
}
WORDS = {True: "holds", False: "does not hold", None: "cannot be judged"}


def validation(study: Study) -> pl.DataFrame:
    """One row per run, class and promise: did the promise hold, message by message."""
    rows = [
        (
            cell.name,
            cell.scenario,
            v.class_,
            v.promise,
            v.rule,
            WORDS[v.holds],
            v.reason,
            v.expected,
            v.lost,
            v.duplicated,
        )
        for cell in study.cells
        for v in delivery(cell.run)
    ]
    return pl.DataFrame(rows, schema=VERDICT_SCHEMA, orient="row")


def proof_summary(study: Study) -> list[dict[str, Any]]:
    """Proofs by link, direction and quantity, the runs of a campaign taken together; failures first.

    Of several runs: how many, the smallest and largest realised value, the worst verdict, no interval.
    """
    keys = ["link", "direction", "quantity", "asked", "unit"]
    found = []
    for _, rows in proofs(study.cells).group_by(keys, maintain_order=True):
        first = rows.row(0, named=True)  # proofs are sorted, the worst verdict first
        many = rows.height > 1
        text = _span(rows.get_column("realised").drop_nulls().to_list())
        interval = {"low": None, "high": None} if many else {}
        n = rows.get_column("n").sum() if many else first["n"]
        found.append({**first, **interval, "n": n, "shown": text, "runs": rows.height})
    return found


def _span(values: list[float]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def write_tables(study: Study, report_dir: Path) -> dict[str, str]:
    """Write every table as CSV; gives file name and title of those that have rows."""
    folder = report_dir / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {
        "metrics": ("Every figure with its interval, by condition", study.compared),
        "proof": ("Proof of every link", proofs(study.cells)),
        "validation": ("Promises, message by message", validation(study)),
        "nodes": ("Means of every node over the hold", _nodes(study)),
    }
    written = {}
    for key, (title, frame) in wanted.items():
        if frame is not None and not frame.is_empty():
            flat(frame).write_csv(folder / f"{key}.csv")
            written[f"tables/{key}.csv"] = title
    return written


def _nodes(study: Study) -> pl.DataFrame | None:
    parts = []
    for cell in study.cells:
        rows = node_means(cell.run)
        if rows is not None:
            parts.append(rows.with_columns(condition(cell)))
    return pl.concat(parts, how="diagonal") if parts else None
