"""Marks machines that QEMU pauses because their disk cannot be read or written; resumes those with a full
disk when there is room.

libvirt reports a pause in its own thread; the event waits in a queue until the loop takes it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.silence import Silence
from orchestrator.lab.vm.storage import VARIABLE

PERIOD_NS = 2 * SECOND
ROOM_BYTES = 64 << 20  # bytes that must be free before a machine resumes; a cluster of qcow2 has 64 KiB
NO_ROOM = "enospc"  # libvirt's word for a full disk, in the event's reason
Resume = Callable[[Guest], None]  # begins to resume a machine, and does not wait


class Pauses:
    """Handles pauses of the machines in `guests`, the driver's own table, by node; checks every 2 s whether
    disks have room.
    """

    def __init__(self, loop: Loop, guests: Mapping[str, Guest], silence: Silence, resume: Resume) -> None:
        self._loop, self._guests, self._silence, self._resume = loop, guests, silence, resume
        self._events: queue.SimpleQueue[tuple[str, str, str]] = queue.SimpleQueue()
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._open = True
        self._full: set[str] = set()  # machines that wait for free space
        loop.watch(self._read, self._take)
        self._timer = loop.every(PERIOD_NS, self.look)

    def listen(self, libvirt: Any, handle: Any) -> None:
        """Registers for libvirt's events of input and output errors; passes those that pause a machine to
        `tell`.
        """

        def failed(_: Any, domain: Any, path: str, __: str, action: int, reason: str, ___: Any) -> None:
            if action == libvirt.VIR_DOMAIN_EVENT_IO_ERROR_PAUSE:
                self.tell(str(domain.name()), path, reason)

        handle.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_IO_ERROR_REASON, failed, None)

    def tell(self, domain: str, path: str, reason: str) -> None:
        """Queues a pause for the loop and wakes it; may be called in any thread. Does not wake it after
        `close`.
        """
        self._events.put((domain, path, reason))
        if not self._open:
            return  # the lab is being removed
        try:
            os.write(self._write, b".")
        except BlockingIOError:
            return  # the pipe is full, so the loop wakes up anyway

    def look(self) -> None:
        """Resumes machines that were paused on a full disk, if 64 MiB are free there now; removes those that
        have ended from its list.
        """
        for name in list(self._full):
            guest = self._guests.get(name)
            if guest is None or not guest.connected:
                self._full.discard(name)
            elif shutil.disk_usage(guest.storage).free >= ROOM_BYTES:
                self._full.discard(name)
                self._resume(guest)

    def close(self) -> None:
        self._timer.cancelled = True
        self._open = False
        self._loop.unwatch(self._read)
        os.close(self._read)
        os.close(self._write)

    def _take(self) -> None:
        os.read(self._read, 4096)
        while not self._events.empty():
            domain, path, reason = self._events.get()
            for guest in self._guests.values():
                if guest.node.netns == domain:
                    self._paused(guest, path, reason)

    def _paused(self, guest: Guest, path: str, reason: str) -> None:
        if reason == NO_ROOM:
            self._full.add(guest.name)
            why = f"no space left for its disk {path}"
            remedy = f"free disk space there, and it goes on; or start the lab with another {VARIABLE}"
        else:
            why = f"its disk {path} cannot be read or written ({reason or 'no reason given'})"
            remedy = f"look at that file and its disk; `vnet restart LAB {guest.name}` boots it again"
        self._silence.paused(guest, why, remedy)


def resuming(submit: Callable[..., Any], libvirt: Any) -> Resume:
    """Returns a function that resumes a machine in a worker's thread, and ignores libvirt's errors."""

    def resume(guest: Guest) -> None:
        with contextlib.suppress(libvirt.libvirtError):  # the machine has ended, which its channel reports
            guest.domain.resume()

    return lambda guest: submit(resume, guest)
