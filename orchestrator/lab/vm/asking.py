"""The agents of a lab behind one face: the light launcher and every machine's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from orchestrator.lab.driver import OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.vm import merge
from orchestrator.lab.vm.guest import GUEST_LOGS, Guest

Submit = Callable[..., int]


class Asking:
    """Sends a request where it belongs; its answer comes as one. Ids are its own."""

    def __init__(
        self, light: Submit, guests: Mapping[str, Guest], on_log: Callable[[Guest, str, str], None]
    ) -> None:
        self._light, self._guests, self._on_log = light, guests, on_log
        self._ids = itertools.count(1)
        self._running: dict[int, tuple[Submit, int]] = {}  # execs, for input and signals

    def submit(
        self, op: str, on_answer: OnMessage, on_event: OnMessage | None, fields: dict[str, Any]
    ) -> int:
        """One request; LabError where its node cannot be asked."""
        if op in merge.OF_ONE_NODE:
            return self._of_node(op, on_answer, on_event, fields)
        if op in merge.OF_ONE_EXEC:
            submit, target = self._target(op, fields["target"])
            return submit(op, on_answer, on_event, **{**fields, "target": target})
        if op == "workload":
            return self._each(op, on_answer, self._workload(fields["items"]))
        return self._each(op, on_answer, [(self._light, fields), *((s, fields) for s in self._ready())])

    def each(
        self,
        op: str,
        on_answer: OnMessage,
        light: dict[str, Any],
        of_guest: Callable[[Guest], dict[str, Any]],
    ) -> int:
        """The same operation everywhere, with other fields for each machine."""
        asked = [(self._submit_of(g), of_guest(g)) for g in self._guests.values() if g.ready]
        return self._each(op, on_answer, [(self._light, light), *asked])

    def _of_node(
        self, op: str, on_answer: OnMessage, on_event: OnMessage | None, fields: dict[str, Any]
    ) -> int:
        number, guest = next(self._ids), self._guests.get(str(fields.get("node")))
        submit = self._light
        if guest is not None:
            if not guest.ready:
                raise LabError(f"nodes.{guest.name}: {op}: it is {guest.state}; `vnet start` boots it")
            submit = self._submit_of(guest)
            if op == "start" and fields.get("log"):
                fields = {**fields, "log": self._log(guest, str(fields["log"]))}

        def answered(message: Message) -> None:
            self._running.pop(number, None)
            on_answer(message)

        inner = submit(op, answered, on_event, **fields)
        if op == "exec":
            self._running[number] = submit, inner
        return number

    def _log(self, guest: Guest, path: str) -> str:
        inside = f"{GUEST_LOGS}/{path.rsplit('/', 1)[-1]}"
        self._on_log(guest, inside, path)
        return inside

    def _target(self, op: str, number: Any) -> tuple[Submit, int]:
        if number not in self._running:
            raise LabError(f"{op}: no running command has id {number}")
        return self._running[number]

    def _workload(self, items: Iterable[Mapping[str, Any]]) -> list[tuple[Submit, dict[str, Any]]]:
        """Each agent its own roles; those of a machine that failed are nobody's."""
        mine = merge.by_node(items, "node")
        light = [i for name, of in mine.items() if name not in self._guests for i in of]
        asked = [(self._light, {"items": light})]
        for name, guest in self._guests.items():
            if guest.ready and name in mine:
                asked.append((self._submit_of(guest), {"items": mine[name]}))
        return asked

    def _ready(self) -> list[Submit]:
        return [self._submit_of(guest) for guest in self._guests.values() if guest.ready]

    @staticmethod
    def _submit_of(guest: Guest) -> Submit:
        assert guest.channel is not None
        return guest.channel.submit

    def _each(self, op: str, on_answer: OnMessage, asked: list[tuple[Submit, dict[str, Any]]]) -> int:
        """Ask all; a machine that dies before it answers is left out, the light launcher's death is not."""
        answers: dict[int, Message] = {}

        def take(number: int, message: Message) -> None:
            gone = number and not message.get("ok") and "it ended first" in str(message.get("error"))
            answers[number] = {"ok": True} if gone else message
            if len(answers) == len(asked):
                on_answer(merge.joined(answers[n] for n in sorted(answers)))

        for number, (submit, fields) in enumerate(asked):
            try:
                submit(op, partial(take, number), **fields)
            except LabError as error:
                if number == 0:  # the light launcher
                    raise
                take(number, {"ok": False, "error": f"it ended first ({error})"})
        return next(self._ids)
