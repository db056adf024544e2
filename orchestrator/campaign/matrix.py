"""The cells of a campaign: every combination of the levels, repeated, in running order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One run of a campaign. `number` counts from 1 in running order; `repetition` from 1."""

    number: int
    factors: Mapping[str, Any]
    repetition: int
    seed: int

    @property
    def key(self) -> str:
        """A short name for directories: `0007-qos-2-r1`; at most 80 characters."""
        levels = "-".join(f"{name}-{level}" for name, level in self.factors.items())
        legible = "".join(c if c.isalnum() or c in "-_" else "-" for c in levels).strip("-").lower()
        return (
            f"{self.number:04d}-{legible[:70].rstrip('-')}-r{self.repetition}"
            if legible
            else f"{self.number:04d}-r{self.repetition}"
        )


def matrix(factors: Mapping[str, Sequence[Any]], repetitions: int, seed: int) -> list[Cell]:
    """All cells, one whole repetition after the other.

    Repetitions are blocks: a slow drift of the machine then touches all levels alike, and a campaign that is
    ended early holds complete repetitions. All cells of a repetition have the same seed,
    `seed + repetition - 1`, so that levels are compared under the same arrivals (pairs).
    """
    combinations = [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]
    blocks = [(repetition, levels) for repetition in range(1, repetitions + 1) for levels in combinations]
    return [
        Cell(k, levels, repetition, seed + repetition - 1) for k, (repetition, levels) in enumerate(blocks, 1)
    ]
