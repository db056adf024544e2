"""Runs libvirt's slow calls in threads, usually inside the lab's core namespace; each wakes the loop when it
is done.

libvirt opens a domain's taps, and starts QEMU, in the network namespace of the calling thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from orchestrator.lab.loop import Loop

CLONE_NEWNET = 0x40000000  # linux/sched.h
T = TypeVar("T")


def enter(netns: str) -> None:
    """Moves the calling thread, and no other, into a named network namespace; raises OSError if
    that fails.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(f"/run/netns/{netns}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(descriptor, CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), f"/run/netns/{netns}")
    finally:
        os.close(descriptor)


class Workers:
    """A pool of at most `count` threads, which run in the namespace `netns`, or in that of the process if it
    is None.
    """

    def __init__(self, loop: Loop, count: int, netns: str | None) -> None:
        self._loop = loop
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        loop.watch(self._read, self._woken)
        settle: dict[str, Any] = {"initializer": enter, "initargs": (netns,)} if netns else {}
        self._pool = ThreadPoolExecutor(count, "libvirt", **settle)

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Runs a job in a thread, without waiting; the loop wakes up when it is done."""
        future = self._pool.submit(work, *arguments)
        future.add_done_callback(lambda _: self._wake())
        return future

    def together(self, subject: str, patience_ns: int, jobs: Iterable[Callable[[], T]]) -> list[Future[T]]:
        """Runs all jobs in parallel while the loop serves; returns their futures when all are done. Raises
        TimedOut(subject) after `patience_ns`; errors of jobs stay in the futures.
        """
        futures = [self.submit(job) for job in jobs]
        deadline = self._loop.clock.now_ns() + patience_ns
        self._loop.until(deadline, subject, lambda: all(f.done() for f in futures))
        return futures

    def close(self) -> None:
        """Cancels waiting jobs and waits for running ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._loop.unwatch(self._read)
        os.close(self._read)
        os.close(self._write)

    def _woken(self) -> None:
        os.read(self._read, 4096)

    def _wake(self) -> None:
        try:
            os.write(self._write, b".")
        except BlockingIOError:
            return  # the pipe is full, so the loop wakes up anyway
