"""Reads and writes dates and times of day in UTC: `2026-11-26`, `2026-11-26T12:30:00Z`."""

from __future__ import annotations

import datetime
from typing import Any

from .units import UnitError

LAST = datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC)  # latest date; 64 bits of ns end in 2262
FIRST = datetime.datetime(1990, 1, 1, tzinfo=datetime.UTC)
EXAMPLE = "2026-11-26"


def date_ns(value: Any) -> int:
    """Returns a date, or a date with a time, as Unix ns in whole seconds; raises UnitError for other values
    and for years outside 1990 to 2199.

    A time without a zone is UTC.
    """
    remedy = f'write for example "{EXAMPLE}" or "{EXAMPLE}T12:30:00Z"'
    try:
        found = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise UnitError("is not a date", remedy) from None
    moment = found if found.tzinfo else found.replace(tzinfo=datetime.UTC)
    if not FIRST <= moment < LAST:
        raise UnitError(f"is not from {FIRST.year} to {LAST.year - 1}", remedy)
    return int(moment.timestamp()) * 10**9


def date_text(ns: int) -> str:
    """Returns a moment in Unix ns as text that `date_ns` reads, rounded down to the second."""
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
