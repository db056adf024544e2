"""Counts what machines read from and write to their disks, by libvirt's block statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.lab.disks import HEADER, word

FILE = "disks.vm.csv"  # in raw/
MEMORY = ("tmpfs", "ramfs")  # file systems
# Names of libvirt's statistics (virConnectGetAllDomainStats), in the order of the file's columns
COUNTERS = ("rd.bytes", "wr.bytes", "rd.reqs", "wr.reqs")


def counted(stats: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yields each disk of a machine's statistics: its name, the path of its file and its counters."""
    for number in range(int(stats.get("block.count", 0))):
        of = f"block.{number}"
        if f"{of}.name" in stats:
            counters = tuple(int(stats.get(f"{of}.{counter}", 0)) for counter in COUNTERS)
            yield str(stats[f"{of}.name"]), str(stats.get(f"{of}.path", "")), counters


class MachineDisks:
    """The counts of a lab's machines since their first sample; `rising` continues a counter over restarts."""

    def __init__(
        self, rising: Callable[[str, int], int], mounts: Path = Path("/proc/self/mountinfo")
    ) -> None:
        self._rising, self._mounts = rising, mounts
        self._found: dict[tuple[str, str], tuple[tuple[int, ...], str]] = {}

    def take(self, machine: str, stats: Mapping[str, Any]) -> None:
        """Takes one sample of a machine's statistics."""
        for disk, path, counters in counted(stats):
            sums = tuple(
                self._rising(f"disk {machine} {disk} {name}", value)
                for name, value in zip(COUNTERS, counters, strict=True)
            )
            self._found[machine, disk] = sums, path

    def write(self, path: Path) -> None:
        """Writes a line for each disk; nothing if no machine has one (built-in images have none)."""
        lines = [
            f"{machine},{disk},{','.join(map(str, sums))},{word(self.in_memory(file))}\n"
            for (machine, disk), (sums, file) in sorted(self._found.items())
        ]
        if lines:
            path.write_text(HEADER + "".join(lines))

    def in_memory(self, file: str) -> bool | None:
        """Returns whether a disk's file is on a file system in memory; None if its place is not known."""
        if not file:
            return None
        place, best, kind = os.path.realpath(file), "", ""
        for line in self._mounts.read_text().splitlines():
            before, _, after = line.partition(" - ")
            mounted = before.split()[4]
            if len(mounted) >= len(best) and (place + "/").startswith(mounted.rstrip("/") + "/"):
                best, kind = mounted, after.split()[0]
        return kind in MEMORY if kind else None
