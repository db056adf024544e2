"""Binds a lab in virtual time to a core that no other such lab of this machine uses.

A guest is one kernel with one processor, made of processes that wake one another: on one core that is fast,
spread over cores it takes twice as long. A core is taken by binding a Unix socket's abstract name: the kernel
gives it to one process at a time, whoever's it is, and takes it back when that process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "\0vnet-core-{}"
TOPOLOGY = Path("/sys/devices/system/cpu")


@contextmanager
def cores_for_a_lab(allowed: Iterable[int] | None = None) -> Iterator[set[int]]:
    """One core of `allowed` (those of this process) while the context lasts; all where each is taken."""
    candidates = set(os.sched_getaffinity(0) if allowed is None else allowed)
    with socket.socket(socket.AF_UNIX) as claim:
        core = next((core for core in apart(candidates) if _taken(claim, core)), None)
        yield candidates if core is None else {core}


def apart(cores: Iterable[int], topology: Path = TOPOLOGY) -> list[int]:
    """The first thread of each physical core, then the second of each, and so on."""
    return sorted(cores, key=lambda core: (_threads(core, topology).index(core), core))


def _taken(claim: socket.socket, core: int) -> bool:
    """Takes the core; False if another lab has it."""
    try:
        claim.bind(NAME.format(core))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _threads(core: int, topology: Path) -> list[int]:
    """The threads of the core's physical core, in order; only itself if the machine does not list them."""
    path = topology / f"cpu{core}" / "topology" / "thread_siblings_list"  # such as 0,4 or 0-1
    if not path.exists():
        return [core]
    ends = [[int(end) for end in part.split("-")] for part in path.read_text().split(",")]
    return [number for part in ends for number in range(part[0], part[-1] + 1)]
