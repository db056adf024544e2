"""Signs that a run cannot be trusted: an overloaded machine, lost captures, full disks,
sessions that never came about.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning

BUSY_SHARE = 0.9
STEAL_SHARE = 0.05
LATE_NS = 250 * MILLISECOND
LEAST_FREE_BYTES = 1 << 20  # less than a second of captures: stop while the manifest still fits
HOST_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def room(run_dir: Path) -> None:
    """LabError where the disk of the run directory is full: every writer of a run fails alike."""
    disk = os.statvfs(run_dir)
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_FREE_BYTES:
        raise LabError(
            f"{run_dir}: {free} bytes left on its file system: the disk is full; free some space or choose "
            "another place with --out. What was measured is kept"
        )


def machine(rows: list[dict[str, int]], cores: int) -> list[Warning]:
    """Busy and steal share over the seconds of raw/host.csv (cumulative ns per row, in the order of time)."""
    found: list[Warning] = []
    shares = [_shares(a, b, cores) for a, b in itertools.pairwise(rows)]
    busy = [s for s in shares if s[0] > BUSY_SHARE]
    if len(shares) >= 3 and len(busy) > len(shares) * 0.05 and len(busy) >= 2:
        found.append(Warning(
            "cpu-busy",
            f"the lab kernel's CPU was over {BUSY_SHARE:.0%} busy in {len(busy)} of {len(shares)} s",
            "take fewer nodes or a lower rate, or a machine with more cores",
        ))  # fmt: skip
    steal = sum(s[1] for s in shares) / len(shares) if shares else 0.0
    if steal > STEAL_SHARE:
        found.append(Warning(
            "steal", f"the hypervisor took {steal:.1%} of the CPU away on average",
            "repeat the run on a machine that is not shared",
        ))  # fmt: skip
    return found


def _shares(a: dict[str, int], b: dict[str, int], cores: int) -> tuple[float, float]:
    spent = {f: b[f"{f}_ns"] - a[f"{f}_ns"] for f in HOST_FIELDS}
    total = sum(spent.values()) or (b["t_ns"] - a["t_ns"]) * cores or 1
    return 1 - (spent["idle"] + spent["iowait"] + spent["steal"]) / total, spent["steal"] / total


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


def captures(counts: dict[str, dict[str, int]]) -> list[Warning]:
    return [
        Warning(
            "capture-drops",
            f"capture {name} lost {c['dropped_kernel']} packets in the kernel (kept {c['packets']})",
            "take a smaller snap length or a filter; bandwidth and packet figures of this point are too low",
        )
        for name, c in counts.items() if c["dropped_kernel"]
    ]  # fmt: skip


def sessions(connected_ever: int, expected: int) -> list[Warning]:
    if connected_ever >= expected:
        return []
    return [Warning(
        "sessions", f"{expected - connected_ever} of {expected} sessions never were connected at once",
        "see raw/messages.csv (kind C) and the logs of who they connect to",
    )]  # fmt: skip


def host_rows(path: Path) -> list[dict[str, int]]:
    """Rows of raw/host.csv (header or not); a last row cut short by a crash is left out."""
    fields = ["t_ns", *(f"{f}_ns" for f in HOST_FIELDS)]
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        values = line.split(",")
        if len(values) >= len(fields) + 3 and values[0].isdigit():
            rows.append(dict(zip(fields, (int(v) for v in values), strict=False)))
    return rows


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
