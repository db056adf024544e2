"""Offers one interface to all agents of a lab: the launcher of light nodes and the launcher of each
machine.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import (
    Exec,
    Finish,
    OfOneExec,
    OfOneNode,
    Operation,
    Software,
    Stack,
    Start,
    Workload,
)
from orchestrator.lab.vm import merge
from orchestrator.lab.vm.guest import GUEST_LOGS, Guest
from orchestrator.lab.vm.silence import Silence

# Longest wait of a request to all nodes for one machine: if it only reads states, and if a scenario depends
# on it (shorter than PATIENCE_NS in driver.py, the wait for the whole answer).
LOOK_NS = 5 * SECOND
WORK_NS = 60 * SECOND
LOOKS = (Software, Stack)


class Submit(Protocol):
    """The signature of a launcher's `submit`."""

    def __call__(
        self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None
    ) -> int: ...


Outgoing = tuple[Submit, Operation[Any], Guest | None]  # None stands for the launcher of light nodes


class Dispatcher:
    """Sends a request to the launchers of the nodes that it names, or to all, and merges their answers.
    Assigns request ids of its own.
    """

    def __init__(
        self, loop: Loop, light: Submit, guests: Mapping[str, Guest], silence: Silence,
        on_log: Callable[[Guest, str, str], None],
    ) -> None:  # fmt: skip
        self._loop, self._light, self._guests, self._on_log = loop, light, guests, on_log
        self._silence = silence
        self._ids = itertools.count(1)
        self._running: dict[int, tuple[Submit, int]] = {}  # running commands, for their input and signals
        self._open: dict[int, tuple[Guest, str, OnMessage]] = {}  # requests of one machine without an answer
        silence.listen(self._give_up)

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        """Sends one request: to the launcher of its node or command, a workload by node, any other to all
        launchers; returns the request's id. Raises LabError if the node's machine does not answer or the
        command does not run.
        """
        if isinstance(request, OfOneNode):
            return self._of_node(request, on_answer, on_event)
        if isinstance(request, OfOneExec):
            submit, target = self._target(request)
            return submit(dataclasses.replace(request, target=target), on_answer, on_event)
        if isinstance(request, Workload):
            return self._each(on_answer, self._workload(request), WORK_NS)
        return self.each(request, on_answer, lambda _: request)

    def each(
        self, light: Operation[Any], on_answer: OnMessage, of_guest: Callable[[Guest], Operation[Any]]
    ) -> int:
        """Sends an operation to all launchers: `light` to that of light nodes, `of_guest(guest)` to that of
        each ready machine; `Finish` also to silent ones. Merges the answers; machines that take too long (5 s
        for states, else 60 s) are marked as silent and left out.
        """
        # `finish` also reads the records of a machine that has been silent for a while
        last = isinstance(light, Finish)
        guests = [g for g in self._guests.values() if g.ready or (last and g.connected and g.silent)]
        asked: list[Outgoing] = [
            (self._light, light, None),
            *((self._submit_of(g), of_guest(g), g) for g in guests),
        ]
        return self._each(on_answer, asked, LOOK_NS if isinstance(light, LOOKS) else WORK_NS)

    def _of_node(self, request: OfOneNode, on_answer: OnMessage, on_event: OnMessage | None) -> int:
        """Sends a request to its node's launcher and returns the request's id; raises LabError if the machine
        is not ready. The log path of a started program becomes one inside the machine, which is fetched
        later.
        """
        number, guest = next(self._ids), self._guests.get(request.node)
        submit: Submit = self._light
        if guest is not None:
            if not guest.ready:
                raise LabError(guest.unfit(request.op))
            submit = self._submit_of(guest)
            if isinstance(request, Start) and request.log:
                request = dataclasses.replace(request, log=self._log(guest, request.log))

        def answered(message: Message) -> None:
            self._running.pop(number, None)
            if guest is None or self._open.pop(number, None) is not None:
                on_answer(message)

        if guest is not None:
            self._open[number] = guest, request.op, answered
        try:
            inner = submit(request, answered, on_event)
        except LabError:
            self._open.pop(number, None)
            raise
        if isinstance(request, Exec):
            self._running[number] = submit, inner
        return number

    def _give_up(self, guest: Guest) -> None:
        """Answers, with an error, the open requests to the node of a machine that does not respond; its own
        answer is then ignored.
        """
        for of, op, answered in list(self._open.values()):
            if of is guest:
                answered({"ok": False, "error": guest.unfit(op)})

    def _log(self, guest: Guest, path: str) -> str:
        inside = f"{GUEST_LOGS}/{path.rsplit('/', 1)[-1]}"
        self._on_log(guest, inside, path)
        return inside

    def _target(self, request: OfOneExec) -> tuple[Submit, int]:
        if request.target not in self._running:
            raise LabError(f"{request.op}: no running command has id {request.target}")
        return self._running[request.target]

    def _workload(self, whole: Workload) -> list[Outgoing]:
        """Splits a workload by launcher; omits roles of machines that are not ready."""
        mine = merge.by_node(whole.items)
        light = [i for name, of in mine.items() if name not in self._guests for i in of]
        asked: list[Outgoing] = [(self._light, Workload(light), None)]
        for name, guest in self._guests.items():
            if guest.ready and name in mine:
                asked.append((self._submit_of(guest), Workload(mine[name]), guest))
        return asked

    @staticmethod
    def _submit_of(guest: Guest) -> Submit:
        assert guest.channel is not None
        return guest.channel.submit

    def _each(self, on_answer: OnMessage, asked: list[Outgoing], patience_ns: int) -> int:
        """Sends all requests and merges the answers. Leaves out machines that have ended, and marks machines
        without an answer within `patience_ns` as silent. Waits for the light launcher, and raises its
        LabError.
        """
        answers: dict[int, Message] = {}
        late = self._loop.at(self._loop.clock.now_ns() + patience_ns, lambda: give_up())

        def take(number: int, message: Message) -> None:
            if number in answers:
                return  # the request no longer waits for this answer
            gone = number and not message.get("ok") and "it ended first" in str(message.get("error"))
            answers[number] = {"ok": True} if gone else message
            if len(answers) == len(asked):
                late.cancelled = True
                on_answer(merge.joined(answers[n] for n in sorted(answers)))

        def give_up() -> None:
            for number, (_, _, guest) in enumerate(asked):
                if guest is not None and number not in answers:
                    self._silence.mark(guest, patience_ns)
                    take(number, {"ok": True})

        for number, (submit, request, _) in enumerate(asked):
            try:
                submit(request, partial(take, number))
            except LabError as error:
                if number == 0:  # 0 is the launcher of light nodes
                    late.cancelled = True
                    raise
                take(number, {"ok": False, "error": f"it ended first ({error})"})
        return next(self._ids)
