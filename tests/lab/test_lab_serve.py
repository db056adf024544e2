"""Tests the control connection alone: the order of requests, and refused requests, after which the lab
continues.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.lab import requests, sampling
from orchestrator.lab.clock import SECOND, MonotonicClock
from orchestrator.lab.events import Events
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Operation
from orchestrator.lab.serve import Server
from orchestrator.lab.timeline import record_live


class Submitted:
    """A driver that only records the requests that it gets."""

    def __init__(self) -> None:
        self.ops: list[str] = []

    def submit(self, request: Operation[Any], *_: Any) -> int:
        self.ops.append(request.op)
        return len(self.ops)


class Scene:
    """A control server on socket pairs that simulates its lab."""

    def __init__(self) -> None:
        self.loop, self.driver = Loop(MonotonicClock()), Submitted()
        node = SimpleNamespace(name="alpha")
        self.lab = SimpleNamespace(
            loop=self.loop,
            driver=self.driver,
            ready=True,
            events=Events(),
            node=lambda _: node,
            entered=set(),
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
    """Shows that input for a command stays behind the command's own request while that waits behind a slow
    request of the same client.
    """

    def slow(*_: Any) -> dict[str, Any]:
        first.sendall(line(2, "exec", node="alpha", argv=["cat"]) + line(3, "input", target=2, data=""))
        scene.until(lambda: len(scene.server._queue) == 2)
        return {}

    monkeypatch.setitem(requests.WHEN_READY, "inspect", slow)
    first = scene.client()
    first.sendall(line(1, "inspect"))
    scene.until(lambda: len(scene.driver.ops) == 2)
    assert scene.driver.ops == ["exec", "input"]
    assert json.loads(first.recv(4096))["ok"] is True


def test_a_command_on_a_node_and_the_state_of_a_lab_wait_for_nobody(scene, monkeypatch):
    seen: list[list[str]] = []

    def slow(*_: Any) -> dict[str, Any]:
        second.sendall(line(1, "exec", node="alpha", argv=["cat"]) + line(2, "set", nodes=["alpha"]))
        third.sendall(line(1, "status"))
        scene.until(lambda: bool(scene.driver.ops) and len(scene.server._queue) == 1)
        seen.append(list(scene.driver.ops))
        assert json.loads(third.recv(4096))["ok"] is True
        return {}

    monkeypatch.setitem(requests.WHEN_READY, "inspect", slow)
    monkeypatch.setitem(requests.ANYTIME, "status", lambda *_: {})
    monkeypatch.setitem(requests.WHEN_READY, "set", lambda *_: {})
    first, second, third = scene.client(), scene.client(), scene.client()
    first.sendall(line(1, "inspect"))
    scene.until(lambda: bool(seen))
    assert seen == [["exec"]], "and a change of nodes waits for its turn"


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


def test_samples_last_as_long_as_somebody_looks(scene, monkeypatch):
    """Shows that sampling ends when the last client that asked for samples leaves; other clients have no
    effect.
    """
    lab = scene.lab
    lab.serving, lab.sampling, lab.watched, lab.run_dir = True, False, False, Path("/run")
    taken: list[int] = []
    monkeypatch.setattr(sampling, "_sample", lambda _: taken.append(1))
    scene.server._relay = SimpleNamespace(hang_up=lambda _: None)
    first, second, other = scene.client(), scene.client(), scene.client()
    for client in (first, second):
        client.sendall(line(1, "measure"))
    scene.until(lambda: len(scene.server._looking) == 2)
    assert taken == [1] and lab.watched
    for client, last in ((other, False), (first, False), (second, True)):
        before = len(scene.server._clients)
        client.close()
        scene.until(lambda n=before: len(scene.server._clients) < n)
        assert lab.watched is not last
    assert scene.driver.ops == ["sample"]


@pytest.mark.parametrize(("serving", "sampling_now"), [(False, False), (True, True), (False, True)])
def test_looking_adds_no_samples_to_a_scenario(scene, monkeypatch, serving, sampling_now):
    lab = scene.lab
    lab.serving, lab.sampling, lab.watched = serving, sampling_now, False
    monkeypatch.setattr(sampling, "_sample", lambda _: pytest.fail("samples of the scenario's own"))
    assert sampling.look(lab) is sampling_now
    sampling.look_away(lab)
    assert scene.driver.ops == []


@pytest.mark.parametrize(("t0_ns", "marked"), [(None, []), (1, ["by-hand"])])
def test_what_is_changed_by_hand_says_by_whom_and_marks_a_scenario(scene, tmp_path, t0_ns, marked):
    (tmp_path / "raw").mkdir()
    lab = scene.lab
    lab.run_dir, lab.manifest = tmp_path, SimpleNamespace(t0_ns=t0_ns)
    record_live(lab, "impair", ["wan"], {}, "ann\x1b[2J" + "a" * 999)
    (kept,) = (tmp_path / "raw" / "events.jsonl").read_text().splitlines()
    assert json.loads(kept)["label"].startswith("live: impair wan (by ann") and len(kept) < 500
    assert [w.code for w in lab.events.warnings] == marked
    assert not any("\x1b" in w.text or w.suspect for w in lab.events.warnings)
