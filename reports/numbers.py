"""Writes numbers as text, with as many digits as their interval supports."""

from __future__ import annotations

import math

from reports.metrics.stats import POISSON

DIGITS = 5  # significant digits of a value, however narrow its interval
FEW = 3  # significant digits of a value in the headline table
NOTHING = 1e-9  # a half width below this share of the value is caused by rounding


def plain(value: float) -> str:
    """Returns the value with three significant digits; whole numbers and those from a thousand on without
    decimals.
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def plus_minus(value: float, low: float | None, high: float | None, digits: int = DIGITS) -> str:
    """Returns the value ± half the interval as text; without an interval, the value alone.

    Both are rounded to the second digit of the half width; the value has at most `digits` significant digits.
    A half width below the value's last digit is written as less than that digit; with FEW digits it is left
    out.
    """
    half = 0.0 if low is None or high is None else (high - low) / 2
    if half <= NOTHING * max(abs(value), NOTHING):
        return plain(value)
    magnitude = math.floor(math.log10(abs(value) or half))
    decimals = max(0, min(1 - math.floor(math.log10(half)), digits - 1 - magnitude))
    unit = 10.0**-decimals
    if half < unit / 2:
        return plain(value) if digits <= FEW else f"{value:,.{decimals}f} ± <{unit:.{decimals}f}"
    return f"{value:,.{decimals}f} ± {half:,.{decimals}f}"


def counted(value: float, low: float, high: float) -> str:
    """Returns the text "value (low to high)" for a count, whose interval is not symmetric and never goes
    below zero.
    """
    return f"{_digits(value, 3)} ({_digits(low, 2)} to {_digits(high, 2)})"


def measured(value: float, low: float | None, high: float | None, method: str, digits: int = DIGITS) -> str:
    """Returns a value with its interval as text: as `counted` if the interval is a Poisson interval, else as
    `plus_minus`.
    """
    if method.startswith(POISSON) and low is not None and high is not None:
        return counted(value, low, high)
    return plus_minus(value, low, high, digits)


def _digits(value: float, digits: int) -> str:
    """Returns the value with that many significant digits; whole numbers and larger ones keep all digits
    before the decimal point and have no decimals.
    """
    if value == int(value) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
