"""Reads all figures of a run and finds those that are wrong by more than their interval."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROUNDING = 1e-6  # relative error of a figure that was computed in floating point
MEASURED = "measured"
PROOF = ("link", "direction", "quantity")
NOT_OF = ("name", "value", "unit", "n", "low", "high", "method", "limits")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval; `low` and `high` are None if it has none."""

    value: float
    low: float | None
    high: float | None

    def holds(self, true: float) -> bool:
        """Returns whether the true value is in the interval or, without an interval, equals the value."""
        margin = ROUNDING * max(abs(true), abs(self.value)) + 1e-12
        if self.low is None and self.high is None:
            return abs(true - self.value) <= margin
        above = self.low is None or true >= self.low - margin
        return above and (self.high is None or true <= self.high + margin)


Figures = dict[str, Figure]


def figures(run_dir: Path) -> Figures:
    """Returns the figures of summary.json and proof.json by subject."""
    return _summary(run_dir / "summary.json") | _proof(run_dir / "proof.json")


def _summary(path: Path) -> Figures:
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return {_of(row): Figure(row["value"], row["low"], row["high"]) for row in rows}


def _of(row: dict[str, Any]) -> str:
    named = [f"{key} {value}" for key, value in row.items() if key not in NOT_OF and value is not None]
    return f"{row['name']} ({', '.join(named)})"


def _proof(path: Path) -> Figures:
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    found = {}
    for row in rows:
        value = row.get(MEASURED, row.get("realised"))
        if value is not None:
            found[" ".join(str(row[key]) for key in PROOF)] = Figure(value, row["low"], row["high"])
    return found


def wrong(true: Figures, told: Figures) -> list[str]:
    """Returns a text for each figure whose interval does not contain the true value; figures that the run
    lacks are not wrong.
    """
    found = []
    for name, figure in told.items():
        known = true.get(name)
        if known is None or not figure.holds(known.value):
            found.append(f"{name}: {figure.value:g} for {'none' if known is None else f'{known.value:g}'}")
    return found
