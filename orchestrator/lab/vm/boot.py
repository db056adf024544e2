"""Boots many machines, a limited number at a time, and watches each until its agent answers or its deadline
passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Hello
from orchestrator.lab.vm.dialogue import Dialogue, ask, begin
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.workers import Workers

MARGIN_NS = 30 * SECOND  # time limit beyond the machines' own, for libvirt, which has no time limit


@dataclass
class Boot:
    """One machine that boots, until its deadline; `error` is the reason why it failed, else None."""

    guest: Guest
    deadline_ns: int
    created: Future[Any]
    up: bool = False
    error: str | None = None
    read: dict[str, Any] | None = None  # the read-back of the machine's agent


@dataclass
class BootResult:
    """The answers of the machines that booted and the errors of those that failed, by node, and the time (ns)
    from the start until the last agent answered.
    """

    read: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    up_ns: int = 0


class Booting:
    """Starts machines, at most `width` at a time, since more would slow down each.

    `begin` starts one machine and returns its domain; `word` is the machine's state until its agent answers,
    and then `dialogue` runs with the agent.
    """

    def __init__(
        self, loop: Loop, workers: Workers, width: int, word: str,
        begin: Callable[[Guest], Any], connect: Callable[[Guest], Launcher],
        tell: Callable[[Guest, str], None], dialogue: Callable[[Guest], Dialogue[dict[str, Any]]],
    ) -> None:  # fmt: skip
        self._loop, self._workers, self._width, self._word = loop, workers, width, word
        self._begin, self._connect, self._tell, self._dialogue = begin, connect, tell, dialogue
        self._waiting: deque[Guest] = deque()
        self._on_the_way: list[Boot] = []
        self._result = BootResult()
        self._began_ns = 0

    def run(self, guests: Sequence[Guest]) -> BootResult:
        """Starts all machines and waits until each has booted or failed; raises TimedOut if they take longer
        than the sum of their deadlines plus 30 s.
        """
        self._waiting.extend(guests)
        longest = sum(g.node.vm.boot_deadline_ns for g in guests if g.node.vm) + MARGIN_NS
        self._began_ns = self._loop.clock.now_ns()
        last = self._began_ns + longest
        self._loop.until(last, f"{len(guests)} virtual machines", self._settled)
        return self._result

    def _settled(self) -> bool:
        """Checks all machines once; returns whether all have finished."""
        for boot in self._on_the_way:
            self._look(boot)
        for boot in [b for b in self._on_the_way if b.up and b.error is None]:
            self._result.read[boot.guest.name] = boot.read or {}
        for boot in [b for b in self._on_the_way if b.error is not None]:
            why = f"{boot.error}; its console ends: {boot.guest.last_words()}"
            self._result.failed[boot.guest.name] = why
        self._on_the_way = [b for b in self._on_the_way if not b.up and b.error is None]
        while self._waiting and len(self._on_the_way) < self._width:
            self._start(self._waiting.popleft())
        return not self._waiting and not self._on_the_way

    def _start(self, guest: Guest) -> None:
        vm = guest.node.vm
        assert vm is not None
        self._tell(guest, self._word)
        deadline = self._loop.clock.now_ns() + vm.boot_deadline_ns
        self._on_the_way.append(Boot(guest, deadline, self._workers.submit(self._begin, guest)))

    def _look(self, boot: Boot) -> None:
        """Connects to a machine that has just been created; records an error if it could not be created, QEMU
        ended, or its deadline has passed.
        """
        guest = boot.guest
        try:
            if boot.created.done() and guest.channel is None:
                guest.domain = boot.created.result()
                self._greet(boot)
        except LabError as error:
            # the caller adds the place in the topology
            boot.error = str(error).removeprefix(f"nodes.{guest.name}: ")
        if boot.error is None and guest.channel is not None and guest.channel.lost and not boot.up:
            boot.error = "QEMU ended before its agent answered"
        if boot.error is None and not boot.up and self._loop.clock.now_ns() > boot.deadline_ns:
            waited = guest.node.vm.boot_deadline_ns / SECOND if guest.node.vm else 0
            boot.error = f"its agent did not answer within {waited:g} s (`boot_within`)"

    def _greet(self, boot: Boot) -> None:
        """Connects to the agent and sends a hello, which waits in the channel until the agent opens it."""
        guest = boot.guest
        try:
            guest.channel = self._connect(guest)
        except OSError as error:
            raise LabError(f"its channel {guest.directory}/agent.sock: {error.strerror}") from error

        def ended(read: Any, error: str | None) -> None:
            boot.up, boot.read = error is None, read
            boot.error = boot.error or error

        begin(guest, self._greeting(guest), ended)

    def _greeting(self, guest: Guest) -> Dialogue[dict[str, Any]]:
        yield from ask(Hello())
        self._result.up_ns = self._loop.clock.now_ns() - self._began_ns
        self._tell(guest, "agent up")
        return (yield from self._dialogue(guest))
