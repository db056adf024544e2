"""Reads the machine's available memory from /proc/meminfo."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")


def available_bytes(meminfo: str | None = None) -> int | None:
    """Returns the bytes of memory that programs can still get, as the kernel estimates it; None without that
    line (before Linux 3.14).

    meminfo: the text of /proc/meminfo; None: read it.
    """
    text = MEMINFO.read_text() if meminfo is None else meminfo
    fields = (line.split() for line in text.splitlines())
    return next((int(field[1]) * 1024 for field in fields if field[0] == "MemAvailable:"), None)
