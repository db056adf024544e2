"""Numbers as tc reads them."""

from __future__ import annotations


def percent(share: float) -> str:
    return f"{share * 100:.9g}%"


def time(ns: int) -> str:
    """Whole microseconds, as check demands; tc before 6.6 reads nothing finer."""
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if ns % size == 0:
            return f"{ns // size}{unit}"
    return f"{ns // 1000}us"


def bits(bps: int) -> str:
    for unit, size in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if bps % size == 0:
            return f"{bps // size}{unit}"
    return f"{bps}bit"
