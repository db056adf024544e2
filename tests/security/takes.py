"""Takes everything that the kernel grants this user of each limit per user, prints the amounts, and holds
them for a while.

It uses only the standard library: a node runs it, and so does the machine's root, to see what is left for
him.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
MOST = {"inotify": 2000, "timers": 200_000, "queues": 400}
HELD: list[int] = []


def inotify() -> int:
    """Takes an inotify instance; a user may have 128 (fs.inotify.max_user_instances)."""
    HELD.append(fd := libc.inotify_init1(0))
    return fd


def timers() -> int:
    """Takes a POSIX timer, which needs one of the user's queued signals (RLIMIT_SIGPENDING)."""
    made = ctypes.c_void_p()
    return libc.timer_create(0, None, ctypes.byref(made))


def queues() -> int:
    """Takes a message queue, whose bytes count for the user (RLIMIT_MSGQUEUE)."""
    name = f"/vnet-{os.getpid()}-{len(HELD)}".encode()
    HELD.append(fd := libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))
    libc.mq_unlink(name)
    return fd


def main(hold_s: float, most: dict[str, int]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    got = {}
    for take in (inotify, timers, queues):
        upto = most[take.__name__]
        got[take.__name__] = next((n for n in range(upto) if take() < 0), upto)
    print(json.dumps(got), flush=True)
    time.sleep(hold_s)


if __name__ == "__main__":
    main(float(sys.argv[1]), {**MOST, **json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}")})
