"""How many frames a proof needs until an interval can decide."""

from __future__ import annotations

import math

ENOUGH = 30  # fewer frames cannot show a share or a spread
# Share of a tolerance that an interval may fill; the rest allows for an error of its middle.
ROOM = 0.7
# Once these frames were not enough: of the way to the tolerance's edge; times as many at least.
NEARLY, AGAIN = 0.9, 1.3


def needed(n: int, half: float, tolerance: float) -> int | None:
    """Number of frames whose interval fits the tolerance, if the interval of n frames is +- `half`."""
    return math.ceil(n * (half / (ROOM * tolerance)) ** 2) if tolerance else None


def more(n: int, half: float, tolerance: float, away: float, needs: int | None) -> int | None:
    """The frames still needed: by `needed` first; if that many could not decide, by the distance to the
    tolerance's edge.
    """
    before = needs or needed(n, half, tolerance) or 0
    if before > AGAIN * n:
        return before
    edge = max(abs(tolerance - away), half / 4)
    return math.ceil(n * min(4.0, max(AGAIN, (half / (NEARLY * edge)) ** 2)))
