"""Tests for which nodes the queues are read back: all on the machine's kernel; under User-Mode Linux those in
which a program besides the agent ran.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract.plan import Node, Process, Software
from orchestrator.lab import queue_readback
from orchestrator.lab.lab import Lab

ROLE = Software("tx", "client", "udp")
PROGRAM = Software("p", "utility", "command", Process(("true",)))
QUIET = Node("quiet", "quiet", "light", "quiet", "vnet-x.quiet", "vnet/x/quiet", (), (ROLE,))
NODES = (
    QUIET,
    dataclasses.replace(QUIET, name="busy", netns="vnet-x.busy", software=(ROLE, PROGRAM)),
    dataclasses.replace(QUIET, name="image", netns="vnet-x.image", image="a.tar"),
    dataclasses.replace(QUIET, name="entered", netns="vnet-x.entered"),
)


@pytest.mark.parametrize(("kind", "read"), [
    ("uml", ["busy", "image", "entered"]),
    ("host", ["quiet", "busy", "image", "entered"]),
])  # fmt: skip
def test_whose_queues_are_read_back(kind: str, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []
    monkeypatch.setattr(queue_readback, "enter", entered.append)
    monkeypatch.setattr(queue_readback, "_queues", dict)
    lab: Any = SimpleNamespace(
        nodes={node.name: node for node in NODES}, links={}, entered={"entered"},
        driver=SimpleNamespace(name="light"), manifest=SimpleNamespace(kernel={"kind": kind}),
    )  # fmt: skip
    assert queue_readback.look(cast("Lab", lab)) == {}
    assert entered == [f"vnet-x.{name}" for name in read]
