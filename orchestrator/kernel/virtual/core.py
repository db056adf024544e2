"""Binds a lab in virtual time to a core that no other such lab of this machine uses.

A guest is one kernel with one processor, made of processes that wake one another. On several cores it takes
twice as long as on one. A lab claims a core by binding a Unix socket's abstract name. The kernel gives the
name to one process at a time, of any user, and frees it when that process ends in any way.
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
    """Yields one free core of `allowed` (default: those of this process) and claims it while the context
    lasts; yields all of them if none is free.
    """
    candidates = set(os.sched_getaffinity(0) if allowed is None else allowed)
    with socket.socket(socket.AF_UNIX) as claim:
        core = next((core for core in apart(candidates) if _taken(claim, core)), None)
        yield candidates if core is None else {core}


def apart(cores: Iterable[int], topology: Path = TOPOLOGY) -> list[int]:
    """Returns the cores in this order: first one thread of each physical core, then the second threads, and
    so on.
    """
    return sorted(cores, key=lambda core: (_threads(core, topology).index(core), core))


def _taken(claim: socket.socket, core: int) -> bool:
    """Claims the core for the socket; returns False if another lab has it."""
    try:
        claim.bind(NAME.format(core))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _threads(core: int, topology: Path) -> list[int]:
    """Returns the threads of the physical core to which `core` belongs, in order; only `core` if the machine
    does not list them.
    """
    # the file contains a list such as 0,4 or 0-1
    path = topology / f"cpu{core}" / "topology" / "thread_siblings_list"
    if not path.exists():
        return [core]
    ends = [[int(end) for end in part.split("-")] for part in path.read_text().split(",")]
    return [number for part in ends for number in range(part[0], part[-1] + 1)]
