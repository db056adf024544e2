"""Samples the machine outside a User-Mode Linux lab into raw/outer.csv, once a second."""

from __future__ import annotations

import os
import time
from pathlib import Path

from orchestrator.lab import machine

HEADER = (
    "t_ns,user_ns,nice_ns,system_ns,idle_ns,iowait_ns,irq_ns,softirq_ns,steal_ns,"
    "load1,memory_available_bytes,cores"
)
NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class OuterSampler:
    """Writes one CSV line a sample: cumulative CPU time of all cores in ns, load, available bytes, cores."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", buffering=1)
        self._file.write(HEADER + "\n")
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def sample(self) -> None:
        """Appends one line with the present state of the machine."""
        t_ns = self._offset_ns + time.monotonic_ns()
        load1 = os.getloadavg()[0]
        fields = [
            t_ns,
            *cpu_ns(Path("/proc/stat").read_text()),
            f"{load1:.2f}",
            available_bytes(),
            os.cpu_count(),
        ]
        self._file.write(",".join(map(str, fields)) + "\n")

    def close(self) -> None:
        """Closes the file; no more samples are possible."""
        self._file.close()


def cpu_ns(stat: str) -> list[int]:
    """Returns the first eight counters of the line `cpu` of /proc/stat (user to steal), in ns."""
    first = stat.partition("\n")[0].split()
    return [int(ticks) * NS_PER_TICK for ticks in first[1:9]]


def available_bytes() -> int:
    """Returns the bytes of memory that programs can still get; raises OSError if the kernel does not report
    them.
    """
    available = machine.available_bytes()
    if available is None:
        raise OSError(f"{machine.MEMINFO} has no MemAvailable: it needs Linux 3.14 or later")
    return available
