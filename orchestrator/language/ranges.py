"""Reads ranges such as `0.1..5 s` and `1..20`, and computes the value at a share of their width."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .units import QUANTITIES, UnitError

_NUMBER = r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})"
_UNIT = r"[^\s0-9.][^0-9.]{0,15}?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*({_UNIT})?\s*\.\.\s*({_NUMBER})\s*({_UNIT})?\s*")
_FACTORS = {unit: (kind.name, factor) for kind in QUANTITIES.values() for unit, factor in kind.units.items()}
WIDE = 10  # a range above zero whose ends differ by this factor is divided by factors, not by differences
EXAMPLE = 'write for example "0.1..5 s"'


@dataclass(frozen=True)
class Range:
    """A range from `low` to `high`, both in `unit`; without a unit the values are numbers. whole: True if the
    values are integers, because both ends are integers without a unit.
    """

    low: Decimal
    high: Decimal
    unit: str = ""
    whole: bool = False

    def at(self, share: float) -> str | int | float:
        """Returns the value at `share` (0: the low end, 1: the high end), rounded to three digits, within
        the range: text with the unit, or a number without one.
        """
        low, high = float(self.low), float(self.high)
        wide = low > 0 and high / low >= WIDE
        value = low * (high / low) ** share if wide else low + (high - low) * share
        if self.whole:
            return min(int(self.high), max(int(self.low), round(value)))
        rounded = min(self.high, max(self.low, Decimal(f"{value:.3g}")))
        return f"{plain(rounded)} {self.unit}" if self.unit else float(rounded)

    def __str__(self) -> str:
        return f"{plain(self.low)}..{plain(self.high)}{' ' + self.unit if self.unit else ''}"


def plain(number: Decimal) -> str:
    """Returns a number as text, without exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def range_of(value: Any) -> Range | None:
    """Returns the range in a text; None for any other value. Raises UnitError for a range that is empty, or
    whose ends have units of different kinds.
    """
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        if isinstance(value, str) and ".." in value and re.match(r"\s*[-+.0-9]", value):
            raise UnitError("is not a range", EXAMPLE)
        return None
    low, high = Decimal(match[1]), Decimal(match[3])
    unit = match[4] or ""
    if match[2]:
        low *= _ratio(match[2], unit)
    if low >= high:
        rule = "is an empty range" if low > high else "is a range of one value"
        raise UnitError(rule, "write the smaller value first" if low > high else "write the value alone")
    return Range(low, high, unit, not unit and "." not in match[1] + match[3])


def _ratio(unit: str, other: str) -> Decimal:
    if unit == other:
        return Decimal(1)
    if unit not in _FACTORS or other not in _FACTORS or _FACTORS[unit][0] != _FACTORS[other][0]:
        raise UnitError(f'has ends of different units, "{unit}" and "{other}"', EXAMPLE)
    return _FACTORS[unit][1] / _FACTORS[other][1]


def at(value: Any, share: float) -> Any:
    """Returns the value with each range in it, at any depth, replaced by its value at `share`. Raises the
    errors of `range_of`.
    """
    if isinstance(value, dict):
        return {key: at(part, share) for key, part in value.items()}
    if isinstance(value, list):
        return [at(part, share) for part in value]
    found = range_of(value)
    return value if found is None else found.at(share)
