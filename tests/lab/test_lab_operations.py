"""Tests the requests to agents: their bytes, the contract's field names, and refusals."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.lab import operations
from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Operation, contract_page

CONTRACTS = Path(__file__).parents[2] / "docs" / "contracts"
KINDS = [kind for kind in vars(operations).values() if isinstance(kind, type) and hasattr(kind, "op")]


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[tuple[Launcher, socket.socket]]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent.sock"))
        listener.listen()
        launcher = Launcher(Loop(MonotonicClock()), tmp_path / "agent.sock", lambda _: None, lambda _: None)
        theirs, _ = listener.accept()
        yield launcher, theirs
        launcher.close()
        theirs.close()


ON_THE_WIRE = [
    (operations.Hello(), b'"op":"hello"'),
    (operations.Create(None, []), b'"op":"create","core":null,"nodes":[]'),
    (operations.Configure([], []), b'"op":"configure","nodes":[],"core_devices":[]'),
    (operations.Configure([]), b'"op":"configure","nodes":[]'),
    (operations.Set("a", mtu={"eth0": 9000}), b'"op":"set","node":"a","mtu":{"eth0":9000}'),
    (operations.Set("a", hostname="b"), b'"op":"set","node":"a","hostname":"b"'),
    (
        operations.Start("a", {"name": "x"}, "/l"),
        b'"op":"start","node":"a","software":{"name":"x"},"log":"/l"',
    ),
    (
        operations.Stop("a", "x", "SIGTERM", 5),
        b'"op":"stop","node":"a","software":"x","signal":"SIGTERM","timeout_ns":5',
    ),
    (operations.Exec("a", ["ls"], {}, None), b'"op":"exec","node":"a","argv":["ls"],"env":{},"tty":null'),
    (operations.Input(7, data=""), b'"op":"input","target":7,"data":""'),
    (operations.Input(7, eof=True), b'"op":"input","target":7,"eof":true'),
    (operations.Destroy(None), b'"op":"destroy","nodes":null'),
    (
        operations.ListenForFrames(1, 9, "a", "eth0"),
        b'"op":"frames","action":"listen","trial":1,"count":9,"node":"a","iface":"eth0"',
    ),
    (
        operations.SendFrames("a", "eth0", "02:", 1, 9, 64, 0.5, False, 3),
        b'"op":"frames","action":"send","node":"a","iface":"eth0","to":"02:","trial":1,"count":9,"size":64,'
        b'"rate_fps":0.5,"bypass":false,"longest_ns":3',
    ),
    (
        operations.CollectFrames("a", 9, 3),
        b'"op":"frames","action":"collect","node":"a","sent":9,"wait_ns":3',
    ),
]


@pytest.mark.parametrize(("request_", "text"), ON_THE_WIRE, ids=lambda value: getattr(value, "op", ""))
def test_a_request_is_one_line_of_its_fields(
    wire: tuple[Launcher, socket.socket], request_: Operation[Any], text: bytes
) -> None:
    launcher, theirs = wire
    launcher.submit(request_, lambda _: None)
    assert theirs.recv(4096) == b'{"id":1,' + text + b"}\n"


def test_the_contract_page_is_as_the_types_say() -> None:
    again = "run: python -m orchestrator.lab.operations.contract_page > docs/contracts/operations.md"
    assert (CONTRACTS / "operations.md").read_text() == contract_page.page(), again
    made_by_dataclass = [kind.__name__ for kind in KINDS if kind.__doc__.startswith(f"{kind.__name__}(")]
    assert made_by_dataclass == [], "say what it does"


def test_an_answer_is_read_or_refused_with_the_agents_own_words() -> None:
    request = operations.Create("core", [])
    assert request.read(request.accept({"pids": {"a": 7}}))["pids"] == {"a": 7}
    with pytest.raises(LabError, match="node a: exists already"):
        request.read({"ok": False, "error": "node a: exists already; destroy it first"})
    with pytest.raises(LabError, match="create: refused without a reason"):
        request.read({"ok": False})
