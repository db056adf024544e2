"""Numbers as text: as many digits as their interval supports."""

from __future__ import annotations

import math

NOTHING = 1e-9  # a half width below this share of the value is rounding, not spread


def plain(value: float) -> str:
    """Three significant digits; whole numbers from a thousand on."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def plus_minus(value: float, low: float | None, high: float | None) -> str:
    """value ± half the interval, both to the half width's second digit; the value alone where it has none."""
    half = 0.0 if low is None or high is None else (high - low) / 2
    if half <= NOTHING * max(abs(value), NOTHING):
        return plain(value)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    return f"{value:,.{decimals}f} ± {half:,.{decimals}f}"
