"""Gives the nodes of a network by their names, as Mininet's class Mininet does."""

from __future__ import annotations

from typing import Any

from .nodes import Node
from .stubs import Recorded


class Named(Recorded):
    """A network whose nodes have names. `nameToNode`: the nodes by name."""

    nameToNode: dict[str, Node]

    def delNode(self, node: Any, nodes: Any = None) -> bool:
        """Removes a node with its links; returns whether it was there."""
        raise NotImplementedError

    def getNodeByName(self, *names: Any) -> Any:
        """Returns the node of one name, or a list of nodes for several names; KeyError for an unknown
        name.
        """
        return self.nameToNode[names[0]] if len(names) == 1 else [self.nameToNode[name] for name in names]

    get = getNodeByName

    def __getitem__(self, name: str) -> Node:
        return self.nameToNode[name]

    def __delitem__(self, name: str) -> None:
        self.delNode(name)

    def __contains__(self, name: str) -> bool:
        return name in self.nameToNode

    def __len__(self) -> int:
        return len(self.nameToNode)

    def __iter__(self) -> Any:
        return iter(self.nameToNode)

    def keys(self) -> list[str]:
        """Returns the names of the nodes."""
        return list(self.nameToNode)

    def values(self) -> list[Node]:
        """Returns the nodes."""
        return list(self.nameToNode.values())

    def items(self) -> list[tuple[str, Node]]:
        """Returns (name, node) pairs."""
        return list(self.nameToNode.items())
