"""Moves a thread into the network namespace of a node; sockets that the thread then opens belong to that
namespace.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNET = 0x40000000  # linux/sched.h


def enter(netns: str) -> None:
    """Moves the calling thread, which must not be the lab's main thread; raises OSError if there is no such
    namespace.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(f"/run/netns/{netns}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(handle, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), netns)
    finally:
        os.close(handle)
