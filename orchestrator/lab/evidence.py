"""Finds signs against a run that no table shows: a lab that was late, a clock that was set, full disks and
queues, sessions that never connected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from orchestrator.lab.clock import MILLISECOND, SECOND, wall_offset_ns
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning

LATE_NS = 250 * MILLISECOND
SET_NS = (
    MILLISECOND  # the times of captures are as inexact; two readings of an unset clock differ by 1 us or less
)
# Bytes that must stay free; they are less than a second of captures, and the manifest still fits into them.
LEAST_FREE_BYTES = 1 << 20


def room(run_dir: Path) -> None:
    """Raises LabError if the file system of the run directory has less than 1 MiB left, since every writer of
    a run would fail.
    """
    disk = os.statvfs(run_dir)
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_FREE_BYTES:
        raise LabError(
            f"{run_dir}: {free} bytes left on its file system: the disk is full; free some space or choose "
            "another place with --results. What was measured is kept"
        )


def lateness(late_ns: Iterable[int]) -> list[Warning]:
    """Returns a warning if the lab's own timers were late by LATE_NS (250 ms) or more, since programs on the
    same machine were then delayed, too. late_ns: the lateness of each timer in ns.
    """
    late = sorted(late_ns)
    if not late or (worst := late[-1]) < LATE_NS:
        return []
    many = sum(v >= LATE_NS for v in late)
    return [Warning(
        "late", f"the lab's own loop came late by {worst / SECOND:.2f} s ({many} of {len(late)} ticks)",
        "the machine is overloaded or was suspended; repeat the run when it is idle",
    )]  # fmt: skip


class WallClock:
    """Watches how far the machine's time of day moves from the lab's clock, which never steps. offset_ns:
    Unix time minus CLOCK_MONOTONIC at the lab's start.

    The lab and its agents use the lab's clock; the kernel's timestamps of captured packets use the time of
    day.
    """

    def __init__(self, offset_ns: int) -> None:
        self._began_ns, self._furthest_ns = offset_ns, 0

    def look(self) -> None:
        moved = wall_offset_ns() - self._began_ns
        self._furthest_ns = max(self._furthest_ns, moved, key=abs)

    def warnings(self) -> list[Warning]:
        if abs(self._furthest_ns) < SET_NS:
            return []
        by = f"{self._furthest_ns / SECOND:+.3f} s"
        return [Warning(
            "clock-set", f"the machine's clock was set by {by} during the run: "
            "from then on times of captured packets are off by that amount; others are right",
            "repeat the run; do not set the clock meanwhile",
        )]  # fmt: skip


def sessions(connected_ever: int, expected: int) -> list[Warning]:
    if connected_ever >= expected:
        return []
    return [Warning(
        "sessions", f"{expected - connected_ever} of {expected} sessions never were connected at once",
        "see raw/messages.csv (kind C) and the logs of who they connect to",
    )]  # fmt: skip


def queue_drops(path: Path, lossy: set[tuple[str, str]]) -> list[Warning]:
    """Returns a warning for each direction that dropped packets between its first and its last sample in
    links.csv although the topology requests no loss (`lossy`: the directions with requested loss). Returns
    none if the file is missing. Drops before the first sample, of the link proof's trains, do not count as
    drops of the run.
    """
    first: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        values = line.split(",")
        if len(values) >= 9 and values[0].isdigit():
            first.setdefault((values[1], values[2]), int(values[5]))
            last[values[1], values[2]] = int(values[5])
    # A counter below its first value belongs to a new queue, which started at 0.
    dropped = {way: last[way] - first[way] if last[way] >= first[way] else last[way] for way in last}
    return [
        Warning(
            "queue-drops",
            f"link {link} {direction}: its queue dropped {count} packets beyond the requested loss",
            "a rate that is too low for the load, or a limit that is too small; see links in the report",
        )
        for (link, direction), count in dropped.items() if count and (link, direction) not in lossy
    ]  # fmt: skip
