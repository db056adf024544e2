"""Assigns a core to each node with `own_core` and keeps the lab's other programs off these cores.

The kernel may still place other programs of the machine on these cores.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from contract.plan import Node
from orchestrator.lab.errors import LabError


class Cores:
    """The assigned cores of one lab: one for each node with `own_core`, in the order of the nodes, from the
    last core downwards.

    The first core is assigned to no node; nodes beyond the number of cores get none.
    """

    def __init__(self, nodes: Sequence[Node], allowed: Collection[int] | None = None) -> None:
        free = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
        asking = [node.name for node in nodes if node.own_core]
        # the first core is always shared by all other nodes
        self.given = dict(zip(asking, reversed(free[1:]), strict=False))
        self.rest = set(free) - set(self.given.values())

    def leave(self) -> None:
        """Keeps the calling process, and all processes that it starts from now on, off the assigned cores."""
        if self.given:
            os.sched_setaffinity(0, self.rest)

    def bind(self, node: str, pid: int) -> int | None:
        """Binds a node's first process to its core before that process starts others. Returns the core as
        read back, or None if the node has no core. Raises LabError if the kernel refuses.
        """
        if (core := self.given.get(node)) is None:
            return None
        try:
            os.sched_setaffinity(pid, {core})
        except OSError as error:
            raise LabError(f"nodes.{node}: core {core}: the kernel refuses ({error.strerror})") from error
        return min(os.sched_getaffinity(pid))
