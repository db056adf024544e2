"""Reads the machine's available memory from /proc/meminfo."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")


def available_bytes(meminfo: str | None = None) -> int | None:
    """Memory that programs can still have, as the kernel estimates it; None where it does not say (before
    Linux 3.14). `meminfo`: the text of /proc/meminfo, read where it is not given.
    """
    text = MEMINFO.read_text() if meminfo is None else meminfo
    fields = (line.split() for line in text.splitlines())
    return next((int(field[1]) * 1024 for field in fields if field[0] == "MemAvailable:"), None)
