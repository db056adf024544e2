"""Tests a guest whose root writes arbitrary data to its virtio-serial port: its connection ends, the lab goes
on.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vm_agents import Agent, guest_of

from orchestrator.lab import jsonlines
from orchestrator.lab.clock import SECOND, MonotonicClock
from orchestrator.lab.jsonlines import LineBuffer, LineError
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import ReadClock
from orchestrator.lab.vm import clocks
from orchestrator.lab.vm.dialogue import together
from orchestrator.lab.vm.guest_channel import GuestChannel
from orchestrator.lab.vm.records import Fetched

HOSTILE = {
    "no JSON": b"hello\n",
    "no object": b"[1]\n",
    "no text": b"\xff\xfe\x00\n",
    "deep": b"[" * 100_000 + b"\n",
    "an id that is a list": b'{"id": []}\n',
    "an id that is an object": b'{"id": {}, "ok": true}\n',
    "another node": b'{"event": "exited", "node": "b", "software": "agent", "status": 0}\n',
    "the lab's own event": b'{"event": "hosts", "hosts": {}}\n',
    "a state": b'{"event": "node-state", "node": "b", "state": "failed", "t_ns": 1}\n',
    "an error": b'{"event": "error", "text": "end the lab"}\n',
    "no fields": b'{"event": "clients"}\n',
    "a count that is none": b'{"event": "clients", "connected": "x", "total": []}\n',
    "an event that is a list": b'{"event": ["clients"]}\n',
}


class Wire:
    """A guest's channel, and the guest's end of it."""

    def __init__(self, directory: Path) -> None:
        self.loop = Loop(MonotonicClock())
        self.events: list[dict[str, Any]] = []
        self.lost: list[str] = []
        path = directory / "agent.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            self.channel = GuestChannel(self.loop, path, "a", self._event, self.lost.append)
            self.theirs, _ = listener.accept()

    def _event(self, message: dict[str, Any]) -> None:
        if message["event"] == "clients":
            int(message["connected"]), int(message["total"])
        self.events.append(message)

    def until(self, what: str, probe: Callable[[], bool]) -> None:
        self.loop.until(self.loop.clock.now_ns() + 20 * SECOND, what, probe)


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    return Wire(tmp_path)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_agent_sends_ends_its_connection_only(wire: Wire, name: str) -> None:
    wire.theirs.sendall(HOSTILE[name])
    wire.until("the end of the connection", lambda: bool(wire.lost))
    assert wire.events == [] and len(wire.lost) == 1
    assert "it sent " in wire.lost[0] and wire.lost[0].isprintable()


def test_who_waits_for_an_answer_is_told(wire: Wire) -> None:
    answers: list[dict[str, Any]] = []
    wire.channel.submit(ReadClock(), answers.append)
    wire.theirs.sendall(b"garbage\n")
    wire.until("an answer", lambda: bool(answers))
    assert not answers[0]["ok"] and "it sent an invalid message" in answers[0]["error"]


def test_events_of_its_own_pass(wire: Wire) -> None:
    said = [{"event": "clients", "connected": 1, "total": 2}, {"event": "exited", "node": "a", "status": 1}]
    wire.theirs.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in said))
    wire.until("both events", lambda: len(wire.events) == 2)
    assert wire.events == said and wire.lost == []


def test_a_line_without_an_end_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "MOST_BYTES", 1000)
    buffer = LineBuffer()
    with pytest.raises(ValueError, match="a line longer than"):
        for _ in range(20):
            buffer.feed(b"x" * 100)
    assert buffer.feed(b'{"a": 1}\n') == [{"a": 1}]


@pytest.mark.parametrize("chunk", [b"x" * 1001, b" " * 1001, b'{"a": "%s"}\n' % (b"x" * 1000)])
def test_no_line_is_longer_than_the_bound(monkeypatch: pytest.MonkeyPatch, chunk: bytes) -> None:
    """Shows that a line after a first good one is refused if it is too long, whether or not the chunk
    contains its end.
    """
    monkeypatch.setattr(jsonlines, "MOST_BYTES", 1000)
    buffer = LineBuffer()
    assert buffer.feed(b'{"a": 1}\n') == [{"a": 1}]
    with pytest.raises(LineError, match="a line longer than"):
        buffer.feed(chunk)
    assert buffer.feed(b'{"b": 2}\n') == [{"b": 2}]


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b'{"a": "' + b"x" * 1000 + b'"}\n'])
def test_a_bad_line_loses_no_message_before_it(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, bad: bytes
) -> None:
    monkeypatch.setattr(jsonlines, "MOST_BYTES", 1000)
    said = {"event": "clients", "connected": 1, "total": 2}
    wire.theirs.sendall(json.dumps(said).encode() + b"\n" + bad + json.dumps(said).encode() + b"\n")
    wire.until("the end of the connection", lambda: bool(wire.lost))
    assert wire.events == [said] and len(wire.lost) == 1, "what follows the bad line is dropped"


@pytest.mark.parametrize("said", ["soon", None, 1.5, 10**400, -1, [], {}])
def test_a_clock_that_tells_no_time_is_refused(tmp_path: Path, said: object) -> None:
    loop = Loop(MonotonicClock())
    agent = Agent(tmp_path / "agent.sock")
    agent._answer = lambda request: {"now_ns": said}  # type: ignore[method-assign]
    guest = guest_of(tmp_path, loop)
    found, errors = together(loop, "clocks", 20 * SECOND, [(guest, clocks.estimate(loop.clock))])
    assert found == {} and "no time in nanoseconds" in errors["a"]
    agent.close()


@pytest.mark.parametrize(
    "answer", [{}, {"size": "x", "data": ""}, {"size": 5, "data": 7}, {"size": 5, "data": "QUJD" * 100}]
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, answer: dict[str, Any]) -> None:
    loop, taken = Loop(MonotonicClock()), list[bytes]()
    agent = Agent(tmp_path / "agent.sock")
    agent._answer = lambda request: answer  # type: ignore[method-assign]
    guest = guest_of(tmp_path, loop)
    file = Fetched("/run/vnet/messages.csv", taken.append, chunk_bytes=10)
    _, errors = together(loop, "a file", 20 * SECOND, [(guest, file.rest())])
    assert errors["a"] and taken == []
    agent.close()


def test_the_end_of_an_endless_console_is_read_alone(tmp_path: Path) -> None:
    guest = guest_of(tmp_path)
    with guest.console_log.open("wb") as log:
        log.truncate(1 << 40)  # sparse, so that it needs no disk space
        log.seek(0, 2)
        log.write(b"\nlast words\x1b[2J\n")
    assert guest.last_words() == "last words"
