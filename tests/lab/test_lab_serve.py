"""The control connection by itself: the order of requests, and refusals that the lab survives."""

from __future__ import annotations

import errno
import json
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.lab import requests
from orchestrator.lab.clock import SECOND, MonotonicClock
from orchestrator.lab.events import Events
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Operation
from orchestrator.lab.serve import Server


class Submitted:
    """A driver that only writes down what it is given."""

    def __init__(self) -> None:
        self.ops: list[str] = []

    def submit(self, request: Operation[Any], *_: Any) -> int:
        self.ops.append(request.op)
        return len(self.ops)


class Scene:
    """A server on socket pairs, without a lab behind it."""

    def __init__(self) -> None:
        self.loop, self.driver = Loop(MonotonicClock()), Submitted()
        node = SimpleNamespace(name="alpha")
        self.lab = SimpleNamespace(
            loop=self.loop, driver=self.driver, ready=True, events=Events(), node=lambda _: node
        )
        self.server = Server(self.lab)  # type: ignore[arg-type]

    def client(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(5)
        self.server.serve_descriptor(os.dup(theirs.fileno()))
        theirs.close()
        return ours

    def until(self, probe: Any) -> None:
        self.loop.until(self.loop.clock.now_ns() + 5 * SECOND, "the server", probe)


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.server.close()


def line(number: int, op: str, **fields: Any) -> bytes:
    return json.dumps({"id": number, "op": op, **fields}).encode() + b"\n"


def test_input_does_not_overtake_the_exec_that_it_is_for(scene, monkeypatch):
    """The exec waits behind somebody else's slow request; its input must wait with it."""

    def slow(*_: Any) -> dict[str, Any]:
        second.sendall(line(1, "exec", node="alpha", argv=["cat"]) + line(2, "input", target=1, data=""))
        scene.until(lambda: len(scene.server._queue) == 2)
        return {}

    monkeypatch.setitem(requests.WHEN_READY, "inspect", slow)
    first, second = scene.client(), scene.client()
    first.sendall(line(1, "inspect"))
    scene.until(lambda: len(scene.driver.ops) == 2)
    assert scene.driver.ops == ["exec", "input"]
    assert json.loads(first.recv(4096))["ok"] is True


def test_input_passes_a_slow_request_of_somebody_else(scene, monkeypatch):
    seen: list[list[str]] = []

    def slow(*_: Any) -> dict[str, Any]:
        second.sendall(line(2, "input", target=1, data=""))
        scene.until(lambda: len(scene.driver.ops) == 2)
        seen.append(list(scene.driver.ops))
        return {}

    monkeypatch.setitem(requests.WHEN_READY, "inspect", slow)
    first, second = scene.client(), scene.client()
    second.sendall(line(1, "exec", node="alpha", argv=["cat"]))
    scene.until(lambda: scene.driver.ops == ["exec"])
    first.sendall(line(1, "inspect"))
    scene.until(lambda: bool(seen))
    assert seen == [["exec", "input"]]


def test_what_the_machine_refuses_is_an_answer_and_not_the_end(scene, monkeypatch):
    def busy(*_: Any) -> dict[str, Any]:
        raise OSError(errno.EBUSY, "Device or resource busy", "/sys/fs/cgroup/vnet/lab/alpha")

    monkeypatch.setitem(requests.WHEN_READY, "remove", busy)
    answers: list[bytes] = []
    client = scene.client()
    client.setblocking(False)

    def answered() -> bool:
        try:
            answers.append(client.recv(4096))
        except BlockingIOError:
            return False
        return True

    client.sendall(line(1, "remove", nodes=["alpha"]))
    scene.until(answered)
    answer = json.loads(answers[0])
    assert answer["ok"] is False and "remove: [Errno 16]" in answer["error"]
    assert scene.loop.interrupted is None
