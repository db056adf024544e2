"""Passes events of all hosts' parts to the lab: sums connected clients over the hosts, converts the times of
node states to the lab's clock, and names the host in warnings, losses and ended captures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.lab.driver import DriverContext
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.multi_host.hostpart import HostPart


class PartEvents:
    """Passes the parts' events to the lab. captures: for each capture, the function to call if it
    ends early.
    """

    def __init__(self, context: DriverContext, parts: Mapping[str, HostPart]) -> None:
        self._at, self._parts = context, parts
        self.captures: dict[str, Callable[[str], None]] = {}
        self._clients: dict[str, tuple[int, int]] = {}
        self._machines: dict[str, dict[str, Any]] = {}  # clocks of virtual machines, by host
        self._said: set[str] = set()

    def take(self, host: str, message: Message) -> None:
        """Handles one event of a host's part: `clients` is summed, `lost` ends the lab, `capture-died` calls
        the capture's function, `clocks` is kept for `clocks()`, and others are passed to the lab. A node
        state's time is converted to the lab's clock; a warning without a node gets the host's name.
        """
        event = message.get("event")
        if event == "clients":
            self._clients[host] = int(message["connected"]), int(message["total"])
            self._tell_clients()
        elif event == "lost":
            self._at.on_lost(f"host {host}: {message['why']}")
        elif event == "capture-died":
            self.captures[message["name"]](f"host {host}: {message['why']}")
        elif event == "clocks":
            self._machines[host] = message["clocks"]
        elif event == "node-state":
            self._at.on_event({**message, "t_ns": self._parts[host].clock.to_lab(int(message["t_ns"]))})
        elif event == "warning" and "node" not in message:
            self._at.on_event({**message, "text": f"host {host}: {message['text']}"})
        else:
            self._at.on_event(message)

    def warn(self, code: str, text: str, remedy: str, suspect: bool = True) -> None:
        self._at.on_event(
            {"event": "warning", "code": code, "text": text, "remedy": remedy, "suspect": suspect}
        )

    def once(self, code: str, text: str, remedy: str) -> None:
        if code not in self._said:
            self._said.add(code)
            self.warn(code, text, remedy)

    def clocks(self) -> dict[str, dict[str, Any]]:
        """Sends an event with the clock offset and error (ns) of each host and virtual machine to the lab;
        returns those of the hosts. A virtual machine's values include those of its host. Hosts without an
        estimate are left out, and so are their machines.
        """
        hosts = {n: part.clock.facts() for n, part in self._parts.items() if part.clock.estimates}
        machines = {
            node: {**facts, "error_ns": int(facts["error_ns"]) + int(hosts[host]["error_ns"]),
                   "offset_ns": int(facts["offset_ns"]) + int(hosts[host]["offset_ns"])}
            for host, of in self._machines.items() for node, facts in of.items() if host in hosts
        }  # fmt: skip
        self._at.on_event({"event": "clocks", "clocks": {**hosts, **machines}})
        return hosts

    def lost(self, host: str, nodes: Sequence[str], why: str) -> None:
        """Marks the nodes of a lost host as failed. Ends the lab if the topology's policy for failed nodes is
        `abort`, else warns and continues; the clients on that host then count no longer.
        """
        self._clients.pop(host, None)
        now = self._at.loop.clock.now_ns()
        for node in nodes:
            self._at.on_event(
                {"event": "node-state", "node": node, "state": f"failed: host {host} is gone", "t_ns": now}
            )
        if self._at.plan.on_node_failure == "abort":
            self._at.on_lost(f"host {host} ({len(nodes)} nodes): {why}")
        else:
            text = f"host {host} is gone, with {len(nodes)} nodes: {why}"
            self.warn("host-lost", text, "the run continued without it, as the file requests")

    def _tell_clients(self) -> None:
        connected, total = (sum(c[i] for c in self._clients.values()) for i in (0, 1))
        self._at.on_event({"event": "clients", "connected": connected, "total": total})
