"""Tests the client of control.sock against a peer that follows the contract over a real Unix socket."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.sessions import Prefixer, attached, run_on

Answer = Callable[[dict[str, Any]], list[dict[str, Any]]]


def whole(lines: Iterable[str]) -> Iterator[str]:
    """Yields lines until the other side closes or resets the connection."""
    try:
        yield from lines
    except ConnectionResetError:
        return


class Peer:
    """Answers each request line with the result of `answer`, and keeps the requests."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.path, self.answer, self.asked = path, answer, list[dict[str, Any]]()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("r") as lines:
            for line in whole(lines):
                request = json.loads(line)
                self.asked.append(request)
                for message in self.answer(request):
                    try:
                        connection.sendall(json.dumps(message).encode() + b"\n")
                    except (
                        BrokenPipeError,
                        ConnectionResetError,
                    ):  # the client has what it wanted and has gone
                        return

    def close(self) -> None:
        self.listener.close()
        self.thread.join(5)
        assert not self.thread.is_alive()


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Callable[[Answer], tuple[Peer, Control]]]:
    made: list[tuple[Peer, Control]] = []

    def make(answer: Answer) -> tuple[Peer, Control]:
        served = Peer(tmp_path / "control.sock", answer)
        made.append((served, Control.connect(served.path)))
        return made[-1]

    yield make
    for served, control in made:
        control.__exit__(None, None, None)
        served.close()


def echo_shell(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Answers `exec` with the node's name in two pieces; fails on node `bad`; cannot start on node `gone`."""
    if request["op"] != "exec":
        return [{"id": request["id"], "ok": True}]
    node, number = request["node"], request["id"]
    if node == "gone":
        return [{"id": number, "ok": False, "error": "node gone: stopped; start it"}]
    pieces = [f"I am {node[:1]}", f"{node[1:]}\nbye"]
    said = [
        {"id": number, "event": "output", "stream": "stdout", "data": base64.b64encode(p.encode()).decode()}
        for p in pieces
    ]
    return [
        *said,
        {"event": "phase", "phase": "x"},
        {"id": number, "ok": True, "status": 3 if node == "bad" else 0},
    ]


def test_a_refusal_carries_the_labs_text(peer: Any) -> None:
    _, control = peer(
        lambda r: [{"event": "warning"}, {"id": r["id"], "ok": False, "error": "link wan: no such link"}]
    )
    with pytest.raises(ControlError, match=r"^link wan: no such link$"):
        control.call("link", link="wan")


def test_events_of_a_long_request_come_before_its_answer(peer: Any) -> None:
    _, control = peer(
        lambda r: [{"id": r["id"], "event": "phase", "n": 1}, {"id": r["id"], "ok": True, "x": 2}]
    )
    seen: list[int] = []
    assert control.call("add", on_event=lambda e: seen.append(e["n"]))["x"] == 2
    assert seen == [1]


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match=r"control\.sock: no lab process answers"):
        Control.connect(tmp_path / "control.sock")


def test_a_lab_that_dies_is_an_error_not_a_wait() -> None:
    ours, theirs = socket.socketpair()
    with Control(ours) as control:
        control.send("status")
        theirs.close()
        with pytest.raises(ControlError, match="the lab process"):
            next(control.messages())


def test_many_nodes_each_with_its_output_and_status(peer: Any) -> None:
    served, control = peer(echo_shell)
    nodes = [f"n{k}" for k in range(100)] + ["bad", "gone"]
    ended = run_on(control, nodes, ["true"])
    assert [one.node for one in ended] == nodes
    assert bytes(ended[7].stdout) == b"I am n7\nbye"
    assert [one.status for one in ended] == [0] * 100 + [3, None]
    assert ended[-1].error == "node gone: stopped; start it"
    assert all(r.get("eof") for r in served.asked if r["op"] == "input")


def test_lines_of_several_nodes_are_whole_and_named() -> None:
    lines: list[str] = []
    prefix = Prefixer(lines.append, 3)
    prefix("a", "stdout", "höl".encode()[:2])
    prefix("bcd", "stdout", b"x\ny")
    prefix("a", "stdout", "höl".encode()[2:] + b"\n")
    prefix.flush()
    assert lines == ["bcd  x", "a    höl", "bcd  y"]


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_one_node_gets_standard_input_to_its_end(peer: Any, tmp_path: Path, kind: str) -> None:
    got = bytearray()

    def cat(request: dict[str, Any]) -> list[dict[str, Any]]:
        if request["op"] == "input" and not request.get("eof"):
            data = request["data"]
            return [
                {"id": request["id"], "ok": True},
                {"id": 1, "event": "output", "stream": "stdout", "data": data},
            ]
        if request["op"] == "input":
            return [{"id": 1, "ok": True, "status": 7}]
        return [{"id": request["id"], "ok": True}] if request["op"] == "status" else []

    _, control = peer(cat)
    (tmp_path / "in").write_bytes(b"hello")
    if kind == "file":
        stdin = os.open(tmp_path / "in", os.O_RDONLY)
    else:
        stdin, end = os.pipe()
        os.write(end, b"hello")
        os.close(end)
    status = attached(control, "left", ["cat"], stdin=stdin, output=lambda _, data: got.extend(data))
    os.close(stdin)
    assert (status, bytes(got)) == (7, b"hello")
