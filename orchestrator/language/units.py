"""Parses quantities with units to numbers in one internal unit, without rounding, and writes them as text.

duration -> int ns, rate -> int bit/s, size -> int bytes, share -> float in [0, 1], frequency -> float 1/s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

_NUMBER_UNIT = re.compile(
    r"\s*([-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,12})?|\.[0-9]{1,12}))\s*([^\s0-9.][^0-9]{0,15}?)?\s*"
)
_NUMBER = re.compile(r"\s*[-+]?[0-9.]+\s*")


class UnitError(ValueError):
    """Raised for an invalid quantity: `rule` names the mistake, `remedy` a correct form."""

    def __init__(self, rule: str, remedy: str) -> None:
        self.rule, self.remedy = rule, remedy
        super().__init__(f"{rule}; {remedy}")


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: its units as multiples of the internal unit, an example for error texts, and the
    largest value (None: no limit).
    """

    name: str
    units: dict[str, Decimal]
    inner: str
    example: str
    whole: bool = True  # whether the internal value is an int, so that anything finer is refused
    most: Decimal | None = None

    @property
    def known(self) -> str:
        return ", ".join(self.units)


def _table(**units: str) -> dict[str, Decimal]:
    return {name: Decimal(factor) for name, factor in units.items()}


DURATION = Quantity(
    "duration",
    _table(ns="1", us="1e3", ms="1e6", s="1e9", min="60e9", h="3600e9"),
    "ns",
    "20 ms",
    most=Decimal("31536000e9"),  # a year, so that every sum of times fits into 63 bits
)
# For durations that usually take seconds (a hold, a keep-alive): the remedy for a bare 60 is "60 s", not "60
# ms".
SPAN = replace(DURATION, example="60 s")
# Age of results on the command line, ten years at most.
AGE = replace(
    DURATION, name="age", units={**DURATION.units, "d": Decimal("86400e9")}, example="30 d",
    most=Decimal("315360000e9"),
)  # fmt: skip
RATE = Quantity(
    "rate",
    {"bit/s": Decimal(1), "kbit/s": Decimal(10) ** 3, "Mbit/s": Decimal(10) ** 6, "Gbit/s": Decimal(10) ** 9},
    "bit/s",
    "250 kbit/s",
    most=Decimal(10) ** 12,
)
SIZE = Quantity(
    "size",
    _table(B="1", kB="1e3", MB="1e6", GB="1e9", KiB="1024", MiB="1048576", GiB="1073741824"),
    "B",
    "256 MiB",
    most=Decimal(2) ** 50,
)
SHARE = Quantity("share", {"%": Decimal("0.01")}, "1", "1 %", whole=False, most=Decimal(1))
FREQUENCY = Quantity(
    "frequency",
    {"/s": Decimal(1), "/min": Decimal(1) / 60, "/h": Decimal(1) / 3600},
    "/s",
    "100 /s",
    whole=False,
    most=Decimal(10) ** 7,
)
CPU_MHZ = Quantity("CPU clock", {"MHz": Decimal(1), "GHz": Decimal(1000)}, "MHz", "500 MHz", whole=False)
CPU_CORES = Quantity(
    "CPU share", {"cores": Decimal(1), "core": Decimal(1)}, "cores", "0.5 cores", whole=False
)

QUANTITIES = {q.name: q for q in (DURATION, RATE, SIZE, SHARE, FREQUENCY)}


@dataclass(frozen=True, slots=True)
class Cpu:
    """An amount of CPU: exactly one of `mhz` (clock cycles per microsecond) and `cores` is set."""

    mhz: float | None = None
    cores: float | None = None


def parse(kind: Quantity, value: Any) -> Decimal:
    """Returns the quantity in its internal unit. Raises UnitError if the value is not a quantity, has no or
    an unknown unit, or is negative, too fine or too large.
    """
    number, unit = _split(kind, value)
    if unit not in kind.units:
        raise UnitError(
            _unknown_unit(kind, unit), f'write for example "{kind.example}" (units: {kind.known})'
        )
    amount = number * kind.units[unit]
    if number < 0:
        raise UnitError(f"a {kind.name} cannot be negative", f'write for example "{kind.example}"')
    if kind.most is not None and amount > kind.most:
        raise UnitError(f"is more than the largest {kind.name}, {_limit(kind)}", "write a smaller one")
    if kind.whole and amount != amount.to_integral_value():
        raise UnitError(f"is finer than 1 {kind.inner}", f"write a multiple of 1 {kind.inner}")
    return amount


def spaced(kind: Quantity, value: Any) -> str:
    """Returns the quantity as text with one space: `30s` becomes `30 s`. Raises the errors of `parse`."""
    parse(kind, value)
    return " ".join(map(str, _split(kind, value)))


def whole(kind: Quantity, value: Any) -> int:
    """Returns a quantity as an int in its internal unit; raises the errors of `parse`."""
    return int(parse(kind, value))


def signed(kind: Quantity, value: Any) -> int:
    """Returns a quantity that may be below zero, as an int in its internal unit; raises the errors of
    `parse`.
    """
    text = value.strip() if isinstance(value, str) else ""
    return -whole(kind, text[1:]) if text.startswith("-") else whole(kind, value)


def real(kind: Quantity, value: Any) -> float:
    """Returns a quantity as a float in its internal unit; raises the errors of `parse`."""
    return float(parse(kind, value))


def cpu(value: Any) -> Cpu:
    """Parses an amount of CPU: `"500 MHz"` or `"0.5 cores"`; raises UnitError for other values and for zero,
    which would stop the node.
    """
    text = str(value)
    kind = CPU_MHZ if "hz" in text.lower() else CPU_CORES
    try:
        amount = real(kind, value)
    except UnitError as error:
        raise UnitError(error.rule, 'write for example "500 MHz" or "0.5 cores"') from None
    if amount <= 0:
        raise UnitError("must be more than zero", 'write for example "500 MHz" or "0.5 cores"')
    return Cpu(mhz=amount) if kind is CPU_MHZ else Cpu(cores=amount)


def _split(kind: Quantity, value: Any) -> tuple[Decimal, str]:
    """Returns number and unit of a quantity; raises UnitError if the value is not a quantity or
    has no unit.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(f"is not a {kind.name}", f'write for example "{kind.example}"')
    text = str(value)
    if _NUMBER.fullmatch(text):
        first_unit = kind.example.split(" ")[1]
        raise UnitError("has no unit", f'write "{text.strip()} {first_unit}" (units: {kind.known})')
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] is None:
        raise UnitError(f"is not a {kind.name}", f'write for example "{kind.example}"')
    return Decimal(match[1]), " ".join(match[2].split())


def _unknown_unit(kind: Quantity, unit: str) -> str:
    if kind is RATE and unit.rstrip("ps/").endswith(("B", "iB")):
        return f'"{unit}" counts bytes; network rates are in bits'
    return f'"{unit}" is not a unit of {kind.name}'


def _limit(kind: Quantity) -> str:
    unit, factor = max(kind.units.items(), key=lambda item: item[1])
    assert kind.most is not None
    return f"{(kind.most / factor).normalize():f} {unit}"


def text_ns(ns: int) -> str:
    """Returns a duration of whole ns as exact text, in the largest of s, ms, us and ns of which it is at
    least one: "28.5 s"; "0 s" for 0.
    """
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size or (ns == 0 and unit == "s"):
            whole_part, rest = divmod(ns, size)
            digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{whole_part}.{digits} {unit}" if digits else f"{whole_part} {unit}"
    return f"{ns} ns"


def text_bps(bps: float) -> str:
    """Returns a rate as text with up to four digits: "250 kbit/s"."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} bit/s"


def text_bytes(count: float) -> str:
    """Returns a size as text with up to three digits, in powers of 1,000: "2.1 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def text_share(share: float) -> str:
    """Returns a share as a percentage with up to six digits: "1 %"."""
    return f"{share * 100:.6g} %"
