"""Uses up each limit that programs of a machine share, as far as the kernel grants it, prints the amounts,
and holds them for a while. It uses only the standard library: a node runs it, and so does the machine's root,
to measure what is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import pty
import resource
import sys
import tempfile
import time
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# System call numbers of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
IO_SETUP, ADD_KEY = (206, 248) if platform.machine() == "x86_64" else (0, 217)
EVENTS = 64
FAN_REPORT_FID, SHM_LOCK, IPC_RMID, GET_PIPE_SIZE = 0x200, 11, 0, 1032
PIPE_BYTES = 65536  # size of a new pipe, until the user's pages are taken (fs.pipe-user-pages-soft)
HELD: list[object] = []
SEGMENTS: list[int] = []
WATCHED: list[str] = []
TAKES: dict[str, Callable[[], int]] = {}
MOST = {
    "watches": 2000, "inotify": 2000, "fanotify": 2000, "timers": 200_000, "queues": 400, "locked": 600, "keys": 300,
    "aio": 70_000, "terminals": 4000, "pipes": 4000,
}  # fmt: skip


def take(function: Callable[[], int]) -> Callable[[], int]:
    """Puts a function into the table of limits. The function takes one unit; if the kernel refuses, it
    returns a negative number or raises OSError.
    """
    TAKES[function.__name__] = function
    return function


@take
def watches() -> int:
    """Takes an inotify watch (fs.inotify.max_user_watches); the first call takes an instance, too."""
    if not WATCHED:
        HELD.append(libc.inotify_init1(0))
    WATCHED.append(tempfile.mkdtemp())
    return int(libc.inotify_add_watch(HELD[0], WATCHED[-1].encode(), 2))


@take
def inotify() -> int:
    """Takes an inotify instance; a user may have 128 (fs.inotify.max_user_instances)."""
    fd = int(libc.inotify_init1(0))
    HELD.append(fd)
    return fd


@take
def fanotify() -> int:
    """Takes a fanotify group; a user may have 128 (fs.fanotify.max_user_groups)."""
    fd = int(libc.fanotify_init(FAN_REPORT_FID, 0))
    HELD.append(fd)
    return fd


@take
def timers() -> int:
    """Takes a POSIX timer, which needs one of the user's queued signals (RLIMIT_SIGPENDING)."""
    made = ctypes.c_void_p()
    return int(libc.timer_create(0, None, ctypes.byref(made)))


@take
def queues() -> int:
    """Takes a message queue, whose bytes count for the user (RLIMIT_MSGQUEUE)."""
    name = f"/vnet-{os.getpid()}-{len(HELD)}".encode()
    fd = int(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))
    HELD.append(fd)
    libc.mq_unlink(name)
    return fd


@take
def locked() -> int:
    """Locks a MiB of shared memory (RLIMIT_MEMLOCK)."""
    SEGMENTS.append(libc.shmget(0, 1 << 20, 0o1600))
    return int(libc.shmctl(SEGMENTS[-1], SHM_LOCK, None))


@take
def keys() -> int:
    """Takes a key (kernel.keys.maxkeys)."""
    name = f"vnet-{os.getpid()}-{len(HELD)}".encode()
    HELD.append(name)
    return int(libc.syscall(ctypes.c_long(ADD_KEY), b"user", name, b"x", ctypes.c_long(1), ctypes.c_long(-2)))


@take
def aio() -> int:
    """Takes asynchronous events, whose number all users share (fs.aio-max-nr)."""
    made = ctypes.c_ulong(0)
    return int(libc.syscall(ctypes.c_long(IO_SETUP), ctypes.c_long(EVENTS), ctypes.byref(made)))


@take
def terminals() -> int:
    """Takes a terminal, whose number all users share (kernel.pty.max)."""
    HELD.append(pty.openpty())
    return 0


@take
def pipes() -> int:
    """Takes a pipe of full size, until the user's pages are taken (fs.pipe-user-pages-soft)."""
    HELD.append(made := os.pipe())
    return 0 if fcntl.fcntl(made[0], GET_PIPE_SIZE) >= PIPE_BYTES else -1


def amount(name: str, most: int) -> int:
    """Returns how often the function could be called without a refusal, at most `most` times."""
    for count in range(most):
        try:
            if TAKES[name]() < 0:
                return count
        except OSError:
            return count
    return most


def main(hold_s: float, most: dict[str, int]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(json.dumps({name: amount(name, most[name]) for name in TAKES if name in most}), flush=True)
    time.sleep(hold_s)
    for segment in SEGMENTS:
        libc.shmctl(segment, IPC_RMID, None)
    for path in WATCHED:
        os.rmdir(path)


if __name__ == "__main__":
    wanted = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    main(float(sys.argv[1]), wanted or MOST)
