"""Defines the type of a measured time, which compares with a text such as "50 ms", and whose text in a failed
assertion names the quantity.
"""

from __future__ import annotations

import re

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([a-z]+)\s*")


class Measured(float):
    """A duration in seconds that compares with numbers of seconds and with texts that have a unit: `latency <
    "50 ms"`.

    Its text has the value and `said`, which names the quantity. ValueError for a text that is no duration.
    """

    said: str

    def __new__(cls, seconds: float, said: str) -> Measured:
        made = super().__new__(cls, seconds)
        made.said = said
        return made

    def __repr__(self) -> str:
        return f"{written(self)} ({self.said})"

    __str__ = __repr__

    def __lt__(self, other: float | str) -> bool:
        return float(self) < in_seconds(other)

    def __le__(self, other: float | str) -> bool:
        return float(self) <= in_seconds(other)

    def __gt__(self, other: float | str) -> bool:
        return float(self) > in_seconds(other)

    def __ge__(self, other: float | str) -> bool:
        return float(self) >= in_seconds(other)

    def __eq__(self, other: object) -> bool:
        return float(self) == in_seconds(other) if isinstance(other, float | int | str) else NotImplemented

    __hash__ = float.__hash__


def in_seconds(value: float | str) -> float:
    """Returns a duration in seconds, from a number of seconds or from a text with its unit (ns, us, ms, s or
    min); ValueError for other texts.
    """
    if not isinstance(value, str):
        return float(value)
    found = _TEXT.fullmatch(value)
    if found is None or found[2] not in UNITS_NS:
        raise ValueError(f'"{value}": write a duration with its unit, for example "50 ms"')
    return float(found[1]) * UNITS_NS[found[2]] / 1e9


def written(seconds: float) -> str:
    """Returns a duration as text with four digits, in the largest of s, ms and us that gives at least 1, else
    in ns.
    """
    for unit in ("s", "ms", "us"):
        if abs(seconds) * 1e9 >= UNITS_NS[unit]:
            return f"{seconds * 1e9 / UNITS_NS[unit]:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"
