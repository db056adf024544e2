"""One interface to all agents of a lab: the light launcher and every machine's launcher."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from orchestrator.lab.driver import OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Exec, OfOneExec, OfOneNode, Operation, Start, Workload
from orchestrator.lab.vm import merge
from orchestrator.lab.vm.guest import GUEST_LOGS, Guest


class Submit(Protocol):
    """A launcher's `submit`."""

    def __call__(
        self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None
    ) -> int: ...


Outgoing = tuple[Submit, Operation[Any]]


class Dispatcher:
    """Sends a request to the right launchers and merges their answers. It assigns its own ids."""

    def __init__(
        self, light: Submit, guests: Mapping[str, Guest], on_log: Callable[[Guest, str, str], None]
    ) -> None:
        self._light, self._guests, self._on_log = light, guests, on_log
        self._ids = itertools.count(1)
        self._running: dict[int, tuple[Submit, int]] = {}  # execs, for input and signals

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        """Sends one request; LabError if its node is not running."""
        if isinstance(request, OfOneNode):
            return self._of_node(request, on_answer, on_event)
        if isinstance(request, OfOneExec):
            submit, target = self._target(request)
            return submit(dataclasses.replace(request, target=target), on_answer, on_event)
        if isinstance(request, Workload):
            return self._each(on_answer, self._workload(request))
        return self.each(request, on_answer, lambda _: request)

    def each(
        self, light: Operation[Any], on_answer: OnMessage, of_guest: Callable[[Guest], Operation[Any]]
    ) -> int:
        """Sends an operation to all launchers, with separate fields for each machine."""
        asked: list[Outgoing] = [(self._submit_of(g), of_guest(g)) for g in self._guests.values() if g.ready]
        return self._each(on_answer, [(self._light, light), *asked])

    def _of_node(self, request: OfOneNode, on_answer: OnMessage, on_event: OnMessage | None) -> int:
        number, guest = next(self._ids), self._guests.get(request.node)
        submit: Submit = self._light
        if guest is not None:
            if not guest.ready:
                raise LabError(
                    f"nodes.{guest.name}: {request.op}: it is {guest.state}; `vnet start` boots it"
                )
            submit = self._submit_of(guest)
            if isinstance(request, Start) and request.log:
                request = dataclasses.replace(request, log=self._log(guest, request.log))

        def answered(message: Message) -> None:
            self._running.pop(number, None)
            on_answer(message)

        inner = submit(request, answered, on_event)
        if isinstance(request, Exec):
            self._running[number] = submit, inner
        return number

    def _log(self, guest: Guest, path: str) -> str:
        inside = f"{GUEST_LOGS}/{path.rsplit('/', 1)[-1]}"
        self._on_log(guest, inside, path)
        return inside

    def _target(self, request: OfOneExec) -> tuple[Submit, int]:
        if request.target not in self._running:
            raise LabError(f"{request.op}: no running command has id {request.target}")
        return self._running[request.target]

    def _workload(self, whole: Workload) -> list[Outgoing]:
        """Splits a workload by launcher; omits roles of machines that failed."""
        mine = merge.by_node(whole.items)
        light = [i for name, of in mine.items() if name not in self._guests for i in of]
        asked: list[Outgoing] = [(self._light, Workload(light))]
        for name, guest in self._guests.items():
            if guest.ready and name in mine:
                asked.append((self._submit_of(guest), Workload(mine[name])))
        return asked

    @staticmethod
    def _submit_of(guest: Guest) -> Submit:
        assert guest.channel is not None
        return guest.channel.submit

    def _each(self, on_answer: OnMessage, asked: list[Outgoing]) -> int:
        """Sends all requests; ignores a machine that ends before it answers, but not the light launcher's
        end.
        """
        answers: dict[int, Message] = {}

        def take(number: int, message: Message) -> None:
            gone = number and not message.get("ok") and "it ended first" in str(message.get("error"))
            answers[number] = {"ok": True} if gone else message
            if len(answers) == len(asked):
                on_answer(merge.joined(answers[n] for n in sorted(answers)))

        for number, (submit, request) in enumerate(asked):
            try:
                submit(request, partial(take, number))
            except LabError as error:
                if number == 0:  # the light launcher
                    raise
                take(number, {"ok": False, "error": f"it ended first ({error})"})
        return next(self._ids)
