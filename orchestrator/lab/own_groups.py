"""Gives light nodes a control group of their own only when they need it, to save memory and time in large
labs.

In each memory control group the kernel keeps counters for every mounted file system. Each new file system
enlarges the counters of every group, and the kernel never shrinks them (docs/scale.md). So memory and time
grow with the square of a lab's size. Most nodes of a large lab run nothing; their agents share one group
within the lab's limits. A node gets its own group before its first program, load, limit or sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from contract.plan import Node
from orchestrator.lab import operations
from orchestrator.lab.cgroup import Groups
from orchestrator.lab.operations import Operation
from orchestrator.lab.sandbox import NodeLimits

SHARED = "_agents"  # cannot be a node's name, because such names begin with a letter


class OwnGroups:
    """Makes the control groups of a lab's light nodes, and records which nodes still share one."""

    def __init__(self, groups: Groups, limits: NodeLimits) -> None:
        self._groups, self._node_limits = groups, limits
        self._shared = f"vnet/{groups.lab}/{SHARED}"
        self._sharing: dict[str, Node] = {}

    def make(self, nodes: Iterable[Node]) -> None:
        """Makes the groups before the nodes' processes start: one of its own for each node with software or
        limits, and the shared one for the others.
        """
        nodes = list(nodes)
        own = [n for n in nodes if n.software or limited(n)]
        self._sharing |= {n.name: n for n in nodes if n not in own}
        self._limit(own)
        self._groups.create([self._shared] if self._sharing else [])

    def procs(self, node: Node) -> list[str]:
        """Returns the files to which a node's process writes its pid to join its own or the shared group."""
        return self._groups.procs(self._shared if node.name in self._sharing else node.cgroup)

    def give(self, names: Iterable[str], pids: Mapping[str, int]) -> None:
        """Makes an own group for each of these nodes that uses the shared one: sets its limits, then moves
        its process. Does nothing for other nodes.
        """
        for node in [self._sharing[name] for name in names if name in self._sharing]:
            self._limit([node])
            self._groups.move(pids[node.name], node.cgroup)
            del self._sharing[node.name]

    def renew(self, nodes: Iterable[Node]) -> None:
        """Creates the groups also in control-group trees that were added since, and moves their processes
        into them.
        """
        own = [n.cgroup for n in nodes if n.name not in self._sharing]
        groups = own + ([self._shared] if self._sharing else [])
        self._groups.create(groups)
        for group in groups:
            self._groups.adopt(group)

    def remove(self, nodes: Iterable[Node]) -> None:
        """Removes the nodes' own groups; nodes that share a group are only forgotten, because the shared
        group stays.
        """
        self._groups.remove(n.cgroup for n in nodes if self._sharing.pop(n.name, None) is None)

    def _limit(self, nodes: list[Node]) -> None:
        self._groups.create(n.cgroup for n in nodes)
        self._node_limits.set(nodes)


def limited(node: Node) -> bool:
    """Returns whether the topology sets a CPU, memory or process limit or a CPU reservation for the node."""
    asked = (
        node.cpu_limit_mhz, node.cpu_limit_cores, node.cpu_reserve_mhz, node.cpu_reserve_cores,
        node.memory_limit_bytes, node.process_limit,
    )  # fmt: skip
    return any(one is not None for one in asked)


def occupied(request: Operation[Any]) -> list[str]:
    """Returns the nodes in which the request starts a program, a command, a role or frames of a trial; empty
    for other requests.
    """
    match request:
        case operations.Start() | operations.Exec() | operations.ListenForFrames() | operations.SendFrames():
            return [request.node]
        case operations.Workload():
            return [item["node"] for item in request.items]
        case _:
            return []
