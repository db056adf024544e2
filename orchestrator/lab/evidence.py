"""Signs that a run cannot be trusted, of which no table tells: a late lab, full disks and queues, sessions
that never came about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning

LATE_NS = 250 * MILLISECOND
LEAST_FREE_BYTES = 1 << 20  # less than a second of captures: stop while the manifest still fits


def room(run_dir: Path) -> None:
    """LabError where the disk of the run directory is full: every writer of a run fails alike."""
    disk = os.statvfs(run_dir)
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_FREE_BYTES:
        raise LabError(
            f"{run_dir}: {free} bytes left on its file system: the disk is full; free some space or choose "
            "another place with --out. What was measured is kept"
        )


def lateness(late_ns: Iterable[int]) -> list[Warning]:
    """How late the lab's own ticks came: what happens to it happens to the programs beside it."""
    late = sorted(late_ns)
    if not late or (worst := late[-1]) < LATE_NS:
        return []
    many = sum(v >= LATE_NS for v in late)
    return [Warning(
        "late", f"the lab's own loop came late by {worst / SECOND:.2f} s ({many} of {len(late)} ticks)",
        "the machine is overloaded or was suspended; repeat the run when it is idle",
    )]  # fmt: skip


def sessions(connected_ever: int, expected: int) -> list[Warning]:
    if connected_ever >= expected:
        return []
    return [Warning(
        "sessions", f"{expected - connected_ever} of {expected} sessions never were connected at once",
        "see raw/messages.csv (kind C) and the logs of who they connect to",
    )]  # fmt: skip


def queue_drops(path: Path, lossy: set[tuple[str, str]]) -> list[Warning]:
    """Directions that dropped packets although nothing asked them to (`lossy` ones are meant to), from
    raw/links.csv.
    """
    last: dict[tuple[str, str], int] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        values = line.split(",")
        if len(values) >= 9 and values[0].isdigit():
            last[values[1], values[2]] = int(values[5])
    return [
        Warning(
            "queue-drops",
            f"link {link} {direction}: its queue dropped {count} packets beyond the loss asked for",
            "a rate that is too low for the load, or a limit that is too small; see links in the report",
        )
        for (link, direction), count in last.items() if count and (link, direction) not in lossy
    ]  # fmt: skip
