"""Finds the facts of the real machine for the manifest: processor, clock rate, memory, kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any


def machine(cpuinfo: str | None = None) -> dict[str, Any]:
    """Returns cpu (model), cores, mhz (highest known rate of core 0), memory_bytes and kernel (release)."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if cpuinfo is None else cpuinfo
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _field(cpuinfo, "model name") or "unknown",
        "cores": os.cpu_count(),
        "mhz": max_mhz(cpuinfo),
        "memory_bytes": pages * page,
        "kernel": os.uname().release,
    }


def max_mhz(cpuinfo: str) -> float | None:
    """Returns the highest clock rate of core 0 in MHz from cpufreq, else the present one of /proc/cpuinfo;
    None if neither has it.
    """
    cpufreq = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if cpufreq.exists():
        return int(cpufreq.read_text()) / 1000  # kHz
    shown = _field(cpuinfo, "cpu MHz")
    return float(shown) if shown else None


def _field(cpuinfo: str, name: str) -> str | None:
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else None
