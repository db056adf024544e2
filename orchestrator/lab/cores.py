"""Cores that nodes have to themselves (`own_core`): which node gets which, and that all others stay off them.

Others are the lab's own programs: what else runs on the machine goes where its kernel puts it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from orchestrator.lab.errors import LabError
from orchestrator.model import Node


class Cores:
    """The cores of one lab, shared out once: the last of them, one each, in the order of who asks."""

    def __init__(self, nodes: Sequence[Node], allowed: Collection[int] | None = None) -> None:
        free = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
        asking = [node.name for node in nodes if node.own_core]
        self.given = dict(zip(asking, reversed(free[1:]), strict=False))  # one stays for all others
        self.rest = set(free) - set(self.given.values())

    def leave(self) -> None:
        """Take the calling process, and all that it starts from now on, off the cores that are given away."""
        if self.given:
            os.sched_setaffinity(0, self.rest)

    def bind(self, node: str, pid: int) -> int | None:
        """Put a node's first process on its core, before it starts any other; the core, as read back."""
        if (core := self.given.get(node)) is None:
            return None
        try:
            os.sched_setaffinity(pid, {core})
        except OSError as error:
            raise LabError(f"nodes.{node}: core {core}: the kernel refuses ({error.strerror})") from error
        return min(os.sched_getaffinity(pid))
