"""Runs commands on nodes for clients: maps the client's ids to the launcher's and sends output and status
back.
"""

from __future__ import annotations

from typing import Any, Protocol

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab
from orchestrator.lab.operations import Exec, Input, Resize, Signal

OF_A_COMMAND: dict[str, type[Input | Resize | Signal]] = {k.op: k for k in (Input, Resize, Signal)}


class Peer(Protocol):
    """A client that receives messages."""

    def send(self, message: Message) -> None: ...


class Relay:
    """Keeps the commands that run on nodes, by client and the client's id, and passes messages between them
    and their clients.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._running: dict[tuple[int, Any], int] = {}

    def execute(self, peer: Peer, request: Message) -> None:
        """Starts a command on a node; its `output` events and the answer with `status` go to the client under
        the client's id. Raises LabError if that id is still in use or the node is unknown.
        """
        number = request.get("id")
        key = (id(peer), number)
        if key in self._running:
            raise LabError(f"exec: id {number} is still running; take another id")
        node = self._lab.node(str(request.get("node"))).name
        wanted = Exec(node, request["argv"], request.get("env") or {}, request.get("tty"))

        def answer(message: Message) -> None:
            self._running.pop(key, None)
            peer.send({**message, "id": number})

        self._running[key] = self._lab.driver.submit(
            wanted, answer, lambda event: peer.send({**event, "id": number})
        )
        self._lab.entered.add(node)

    def forward(self, peer: Peer, request: Message) -> None:
        """Passes input, resize or signal to a running command of the same client, which gets the answer;
        raises LabError if there is no such command.
        """
        key = (id(peer), request.get("target"))
        if key not in self._running:
            raise LabError(f"{request['op']}: no running command has id {request.get('target')}")
        fields = {k: v for k, v in request.items() if k not in ("id", "op", "target")}
        number = request.get("id")
        wanted = OF_A_COMMAND[request["op"]](target=self._running[key], **fields)
        self._lab.driver.submit(wanted, lambda message: peer.send({**message, "id": number}))

    def hang_up(self, peer: Peer) -> None:
        """Sends SIGHUP to the running commands of a disconnected client, and drops their records."""
        for key in [k for k in self._running if k[0] == id(peer)]:
            self._lab.driver.submit(Signal(self._running.pop(key), "SIGHUP"), lambda _: None)
