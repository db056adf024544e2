"""Computes the effect of netem's correlation on a probability.

netem draws `x = (1 - rho) * uniform + rho * last x` and acts where x is below the requested probability
(get_crandom and its callers in the kernel's net/sched/sch_netem.c). This mixing narrows the distribution of x
around one half, so a small probability takes effect less often than requested, and the more so the larger rho
is. The module computes the share of packets that this arithmetic affects.
"""

from __future__ import annotations

import itertools
from functools import cache

_CELLS = 4000
_ROUNDS = 60
_SMALL = 1e-12


@cache
def effective_share(chance: float, correlation: float) -> float:
    """Returns the long-run share of packets that netem affects if it has the probability `chance`, in [0, 1],
    and `correlation`, in [0, 1). It is computed numerically.
    """
    if correlation == 0 or chance in (0.0, 1.0):
        return chance
    return _at(_stationary(correlation), chance)


@cache
def spared_twice(chance: float, correlation: float) -> float:
    """Returns the share of pairs of successive draws of which neither affects its packet; the arguments are
    those of `effective_share`.
    """
    if correlation == 0 or chance in (0.0, 1.0):
        return (1 - chance) ** 2
    below, total = _stationary(correlation), 0.0
    for cell in range(int(chance * _CELLS), _CELLS):
        first = max(chance, cell / _CELLS)
        here = _at(below, (cell + 1) / _CELLS) - _at(below, first)
        middle = (first + (cell + 1) / _CELLS) / 2
        least = (chance - correlation * middle) / (1 - correlation)
        total += here * (1 - min(max(least, 0.0), 1.0))
    return total


@cache
def _stationary(correlation: float) -> list[float]:
    """Returns the distribution function of x in the long run, sampled at equal distances."""
    below = [cell / _CELLS for cell in range(_CELLS + 1)]  # P(x < cell / _CELLS), at first for a uniform x
    for _ in range(_ROUNDS):
        after = _mixed(below, correlation)
        if max(abs(a - b) for a, b in zip(after, below, strict=True)) < _SMALL:
            break
        below = after
    return below


def _at(values: list[float], place: float) -> float:
    """Interpolates a function on [0, 1], sampled at equal distances in `values`, at `place`; constant outside
    [0, 1].
    """
    scaled = min(max(place, 0.0), 1.0) * _CELLS
    cell = min(int(scaled), _CELLS - 1)
    return values[cell] + (values[cell + 1] - values[cell]) * (scaled - cell)


def _mixed(below: list[float], rho: float) -> list[float]:
    """Returns the distribution function of (1 - rho) u + rho x for a uniform u and an x distributed as
    `below`.

    P((1 - rho) u + rho x < z) is the mean over u of P(x < (z - (1 - rho) u) / rho): an integral of `below`.
    """
    area = [0.0]
    for left, right in itertools.pairwise(below):
        area.append(area[-1] + (left + right) / 2 / _CELLS)
    result = []
    for cell in range(_CELLS + 1):
        high = cell / _CELLS / rho
        low = high - (1 - rho) / rho
        result.append((_integral(area, high) - _integral(area, low)) * rho / (1 - rho))
    return result


def _integral(area: list[float], place: float) -> float:
    """Returns the integral up to `place` of a distribution function that is 0 below 0 and 1 above 1."""
    if place <= 0:
        return 0.0
    return area[-1] + (place - 1) if place >= 1 else _at(area, place)
