"""Simulates guests' agents on Unix sockets, and guests that talk to them."""

from __future__ import annotations

import base64
import json
import socket
import threading
from pathlib import Path
from typing import Any

from lab_plans import machine, node
from vm_values import image

from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.driver import OnMessage
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Operation
from orchestrator.lab.vm.guest import Guest


class Agent:
    """Simulates a guest's agent on a Unix socket: it answers as `answers` defines, with a clock that is off
    by `offset_ns`.
    """

    def __init__(self, path: Path, files: dict[str, bytes] | None = None, offset_ns: int = 0) -> None:
        self.files, self.offset_ns, self.seen = files or {}, offset_ns, []  # type: ignore[var-annotated]
        self._clock = MonotonicClock(0)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("r") as lines:
            for line in lines:
                request = json.loads(line)
                self.seen.append(request)
                answer = {"id": request["id"], "ok": True, **self._answer(request)}
                connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "clock":
            return {"now_ns": self._clock.now_ns() + self.offset_ns}
        if request["op"] == "fetch":
            if (data := self.files.get(request["path"])) is None:
                return {"size": None}
            part = data[request["offset"] : request["offset"] + request["length"]]
            return {"size": len(data), "data": base64.b64encode(part).decode()}
        if request["op"] == "exec":
            return {"status": 0}
        if request["op"] == "configure":
            return {"nodes": {n["name"]: {"interfaces": n["interfaces"]} for n in request.get("nodes", [])}}
        return {}

    def close(self) -> None:
        self._listener.close()


class Told:
    """Keeps the states and warnings that a lab's `Watch` reports."""

    def __init__(self) -> None:
        self.states: list[tuple[str, str]] = []
        self.warnings: list[tuple[str, str, str]] = []

    def state(self, guest: Guest, state: str) -> None:
        guest.state = state
        self.states.append((guest.name, state))

    def warn(self, code: str, text: str, remedy: str, suspect: bool = True) -> None:
        self.warnings.append((code, text, remedy))


class FakeChannel:
    """A machine's connection that answers only on the test's request."""

    lost = False

    def __init__(self) -> None:
        self.seen: list[Operation[Any]] = []
        self._open: list[OnMessage] = []

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        self.seen.append(request)
        self._open.append(on_answer)
        return len(self.seen)

    def answer(self, **fields: Any) -> None:
        """Answers all requests so far, in their order."""
        waiting, self._open = self._open, []
        for call in waiting:
            call({"ok": True, **fields})


def guest_of(directory: Path, loop: Loop | None = None, name: str = "a") -> Guest:
    guest = Guest(machine(node("demo", 0, name)), image(), directory, directory, directory / "console.log")
    if loop is not None:
        guest.channel = Launcher(loop, directory / "agent.sock", lambda _: None, lambda _: None)
        guest.state = "running"
    return guest
