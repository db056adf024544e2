"""Finds machines whose agents do not answer, so that requests to other nodes do not wait for them.

Every 2 s, sends a hello to each connected machine, unless an earlier hello is still open. Marks a machine
without an answer within 10 s as `silent`, and a machine that QEMU paused as `paused`. Requests leave such
machines out until they answer again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop, Timer
from orchestrator.lab.operations import Hello
from orchestrator.lab.vm.guest import PAUSED, SILENT, Guest

PERIOD_NS = 2 * SECOND
# Longest time for an answer. An agent answers a hello in some milliseconds, and within 2 s while forty
# machines boot on two cores.
SILENT_NS = 10 * SECOND


class Told(Protocol):
    """The interface that receives states and warnings: a `Watch`."""

    def state(self, guest: Guest, state: str) -> None: ...
    def warn(self, code: str, text: str, remedy: str, suspect: bool = True) -> None: ...


class Silence:
    """Finds silent and paused machines between `start` and `stop`. `guests` is the driver's own table, so
    machines that are added or removed later count, too.
    """

    def __init__(self, loop: Loop, guests: Mapping[str, Guest], watch: Told) -> None:
        self._loop, self._guests, self._watch = loop, guests, watch
        self._asked: dict[
            str, tuple[Launcher, int]
        ] = {}  # hellos without an answer: the connection, and the time of the hello
        self._listeners: list[Callable[[Guest], None]] = []
        self._timer: Timer | None = None

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._loop.every(PERIOD_NS, self.look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancelled = True
            self._timer = None

    def listen(self, call: Callable[[Guest], None]) -> None:
        """Registers a function that is called with each machine that becomes silent or is paused."""
        self._listeners.append(call)

    def look(self) -> None:
        """Sends a hello to each connected machine without an open one; marks ready machines whose answer is
        10 s overdue as silent.
        """
        now = self._loop.clock.now_ns()
        for guest in list(self._guests.values()):
            channel = guest.channel
            if channel is None or not guest.connected:
                continue
            asked, since = self._asked.get(guest.name, (None, 0))
            if asked is not channel:
                self._ask(guest, channel)
            elif guest.ready and now - since >= SILENT_NS:
                self.mark(guest, now - since)

    def mark(self, guest: Guest, waited_ns: int) -> None:
        """Marks a ready machine as silent that has not answered for `waited_ns`, with a warning, calls the
        listeners and sends a hello; does nothing for other machines.
        """
        if not guest.ready:
            return
        waited = f"no answer from its agent for {waited_ns / SECOND:.0f} s"
        self._set(
            guest, f"{SILENT}: {waited}", f"{waited}; requests leave it out until it answers",
            f"`vnet console LAB {guest.name} --log` prints its console; `vnet restart LAB {guest.name}` "
            "boots it again",
        )  # fmt: skip
        if guest.channel is not None and self._asked.get(guest.name, (None,))[0] is not guest.channel:
            self._ask(guest, guest.channel)

    def paused(self, guest: Guest, why: str, remedy: str) -> None:
        """Marks a connected machine as paused by QEMU, with a warning that has the reason and a remedy, and
        calls the listeners.
        """
        if guest.connected:
            self._set(guest, f"{PAUSED}: {why}", f"QEMU paused it: {why}", remedy)

    def again(self, guest: Guest) -> None:
        """Marks a connected machine that is silent or paused as running."""
        if guest.connected and not guest.ready:
            self._watch.state(guest, "running")

    def _set(self, guest: Guest, state: str, text: str, remedy: str) -> None:
        self._watch.state(guest, state)
        self._watch.warn("silent", f"nodes.{guest.name}: {text}", remedy)
        for call in self._listeners:
            call(guest)

    def _ask(self, guest: Guest, channel: Launcher) -> None:
        try:
            self._asked[guest.name] = channel, self._loop.clock.now_ns()
            channel.submit(Hello(), partial(self._answered, guest, channel))
        except LabError:  # the machine has just ended, which its channel reports
            self._asked.pop(guest.name, None)

    def _answered(self, guest: Guest, channel: Launcher, answer: Message) -> None:
        if self._asked.get(guest.name, (None,))[0] is channel:
            del self._asked[guest.name]
        if guest.channel is channel and answer.get("ok"):
            self.again(guest)
