"""Connects to a guest's agent and checks its messages.

Root of the guest can send anything: a wrong message ends the connection, not the lab, and no event can be
about another node.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestrator.lab.jsonlines import STRANGE, Message
from orchestrator.lab.launcher import Launcher, OnMessage
from orchestrator.lab.loop import Loop

# Events that agents send without a request (docs/contracts/launcher.md); all other events come from the lab's
# own parts.
EVENTS = frozenset({"clients", "error", "exited", "records", "restarted", "warning"})


class GuestChannel(Launcher):
    """A Launcher connection that checks each message from the guest, and ends the connection for a
    wrong one.
    """

    def __init__(
        self, loop: Loop, path: Path, node: str, on_event: OnMessage, on_lost: Callable[[str], None]
    ) -> None:
        self._node = node
        super().__init__(loop, path, on_event, on_lost)

    def _take(self, message: Message) -> None:
        try:
            if message.get("id") is None:
                _check(self._node, message)
            super()._take(message)
        except STRANGE as error:
            self._lose(f"it sent what no agent sends: {type(error).__name__}: {str(error)[:200]}")


def _check(node: str, message: Message) -> None:
    """Raises ValueError for an event that no agent sends, that names another node, or that ends the agent
    itself.
    """
    event = message.get("event")
    if event not in EVENTS:
        raise ValueError(f"an event {str(event)[:40]!r}")
    if message.get("node", node) != node:
        raise ValueError(f"an event of node {str(message['node'])[:40]!r}")
    if event == "error":
        raise ValueError(str(message.get("text")))
