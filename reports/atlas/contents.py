"""Summarises the content of an atlas data set, computed from the data set itself."""

from __future__ import annotations

from typing import Any, Literal

import polars as pl

from reports.atlas.axes import AXES, DEADLINES_S, duration_words
from reports.atlas.dataset import Atlas, about


def contents(atlas: Atlas) -> dict[str, Any]:
    """Returns the facts of the data set by label: file and command that makes it, runs, points, seeds,
    waiting time, suspect runs, code, agent, kernel, deadlines, and duplex modes.

    For each axis it has the measured range, with the designed range in brackets.
    """
    rows = atlas.rows
    found: dict[str, Any] = {
        "file": f"{atlas.path}, sha256 {atlas.digest}",
        "made by": about(atlas.path)["command"],
        "runs": f"{rows.height}: {', '.join(_per_model(rows))}",
        "points": rows["point"].n_unique(),
        "seeds": _listed(rows["seed"]),
        "updates in a run": _listed(rows["updates"]),
        "waited for": f"{duration_words(_end(rows, 'patience_s', 'min'))} or longer after the last update",
        "not all arrived or confirmed in that time": f"{int(rows['hit_patience'].sum())} runs",
        "suspect runs": int(rows["suspect"].sum()),
        "time": _listed(rows["time"]),
        "code": _listed(rows["code"]),
        "agent": _listed(rows["agent"]),
        "lab kernel": _listed(rows["kernel"]),
        "deadlines": ", ".join(duration_words(d) for d in DEADLINES_S),
    }
    for axis in AXES:
        least, most = _end(rows, axis.name, "min"), _end(rows, axis.name, "max")
        designed = f"designed {axis.say(axis.low)} to {axis.say(axis.high)}"
        found[axis.parameter] = f"{axis.say(least)} to {axis.say(most)} ({designed})"
    found["duplex"] = _listed(rows["duplex"])
    return found


def _end(rows: pl.DataFrame, column: str, which: Literal["min", "max"]) -> float:
    return float(rows.select(getattr(pl.col(column), which)()).item())


def _per_model(rows: pl.DataFrame) -> list[str]:
    counted = rows.group_by("model").len().sort("model")
    return [f"{model} {runs}" for model, runs in counted.iter_rows()]


def _listed(values: pl.Series) -> str:
    return ", ".join(str(value) for value in values.unique().sort().to_list())
