"""Tests whether the figures of a campaign depend on the machine that ran each run, with an F test for each
figure.

Model: a value is the mean of its condition, plus the effect of the machine, plus the error of repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from reports.cell import Cell
from reports.metrics.metric import Of

SIGNIFICANT = 0.01  # probability of a false alarm in any figure (Bonferroni)
FEWEST = 4  # least number of residual degrees of freedom
NOTHING = 1e-9  # differences below this share of the mean are rounding errors
Vector = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Effect:
    """The effect of the machines on one figure. `adds`: each machine's effect, relative to the figure's mean.
    `p`: the probability of such effects by chance, corrected for the number of figures.
    """

    name: str
    of: Of
    adds: dict[str, float]
    p: float

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANT

    @property
    def span(self) -> float:
        """The difference between the effects of the two most different machines, relative to the figure's
        mean.
        """
        return max(self.adds.values()) - min(self.adds.values())


def host_effects(cells: Sequence[Cell]) -> list[Effect]:
    """Returns one effect for each figure that several machines measured in one condition, the smallest `p`
    first.

    Figures of a machine itself (busy, steal) are left out, because they differ by nature, and so are runs in
    virtual time, because they are the same everywhere. A figure with constant values or too few runs for a
    test has no effect.
    """
    found: dict[tuple[str, Of], list[tuple[Cell, float]]] = {}
    for cell in _placed(cells):
        for m in cell.metrics:
            if m.of.machine is None:
                found.setdefault((m.name, m.of), []).append((cell, m.value))
    effects = [e for (name, of), rows in found.items() if (e := _effect(name, of, rows)) is not None]
    corrected = [Effect(e.name, e.of, e.adds, min(1.0, e.p * len(effects))) for e in effects]
    return sorted(corrected, key=lambda e: (e.p, -e.span))


def apart(cells: Sequence[Cell]) -> bool:
    """Returns whether the runs in real time have several machines but no condition that ran on two of them.
    Such machines cannot be compared.
    """
    machines: dict[tuple[str, str], set[str]] = {}
    for cell in _placed(cells):
        machines.setdefault((cell.scenario, cell.series), set()).add(cell.machine)
    several = len(set[str]().union(*machines.values())) > 1
    return several and all(len(names) == 1 for names in machines.values())


def _placed(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.machine and not cell.run.virtual]


def _effect(name: str, of: Of, rows: list[tuple[Cell, float]]) -> Effect | None:
    """Returns the effect for one figure, with its uncorrected `p`; None if no condition has several machines,
    the values do not vary, or too few runs remain for a test.
    """
    values = np.array([value for _, value in rows])
    machines = sorted({cell.machine for cell, _ in rows})
    conditions = np.unique([f"{c.scenario}\n{c.series}" for c, _ in rows], return_inverse=True)[1]
    on = np.array([[cell.machine == machine for machine in machines] for cell, _ in rows], dtype=float)
    within, design = _centred(values, conditions), np.apply_along_axis(_centred, 0, on, conditions)
    rank = int(np.linalg.matrix_rank(design))
    free = len(values) - int(conditions.max()) - 1 - rank
    mean = abs(float(values.mean()))
    if rank == 0 or free < FEWEST or np.abs(within).max() <= NOTHING * mean:
        return None
    adds = np.linalg.lstsq(design, within, rcond=None)[0]
    left = float(np.sum((within - design @ adds) ** 2))
    explained = float(np.sum(within**2)) - left
    tiny = max((NOTHING * mean) ** 2, float(np.finfo(float).tiny))
    p = float(fdtrc(rank, free, explained / rank / max(left / free, tiny)))
    relative = adds / mean if mean else adds
    return Effect(name, of, dict(zip(machines, map(float, relative), strict=True)), p)


def _centred(values: Vector, conditions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Vector:
    """Returns the values minus the mean of their condition."""
    means = np.bincount(conditions, weights=values) / np.bincount(conditions)
    return np.asarray(values - means[conditions])
