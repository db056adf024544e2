"""Tests that the lab records a node as used only if a client's command really began on it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.lab.relay import Relay


def test_a_request_without_a_command_enters_no_node() -> None:
    entered: set[str] = set()
    lab: Any = SimpleNamespace(
        entered=entered,
        node=lambda name: SimpleNamespace(name=name),
        driver=SimpleNamespace(submit=lambda wanted, answer, event: 7),
    )
    relay, peer = Relay(lab), SimpleNamespace(send=lambda message: None)
    with pytest.raises(KeyError):
        relay.execute(peer, {"id": 1, "op": "exec", "node": "a"})
    assert not entered
    relay.execute(peer, {"id": 1, "op": "exec", "node": "a", "argv": ["true"]})
    assert entered == {"a"}
