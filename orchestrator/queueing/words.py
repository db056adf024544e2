"""Writes numbers in the notation of tc, and parses them."""

from __future__ import annotations

TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
RATES = {"tbit": 1e12, "gbit": 1e9, "mbit": 1e6, "kbit": 1e3, "bit": 1.0}


def percent(share: float) -> str:
    return f"{share * 100:.9g}%"


def time(ns: int) -> str:
    """Returns a time in tc's notation, in s, ms or whole us, rounded down. The checks of a topology require
    whole microseconds, since tc before 6.6 reads nothing finer.
    """
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if ns % size == 0:
            return f"{ns // size}{unit}"
    return f"{ns // 1000}us"


def bits(bps: int) -> str:
    for unit, size in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if bps % size == 0:
            return f"{bps // size}{unit}"
    return f"{bps}bit"


def scaled(text: str, units: dict[str, float]) -> float:
    """Parses a number with its unit: `10mbit` with RATES is 1e7, `5ms` with TIMES is 0.005."""
    unit = text.lstrip("0123456789.")
    return float(text.removesuffix(unit)) * units[unit]
