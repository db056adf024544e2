"""Replaces Mininet's class Topo, which scripts subclass, and the topologies that Mininet provides."""

from __future__ import annotations

from typing import Any

from .functions import natural
from .said import here
from .stubs import Recorded


class Topo(Recorded):
    """Records the nodes and links that `build` or the script adds, in order, with the default parameters
    `hopts`, `sopts` and `lopts` of hosts, switches and links.
    """

    def __init__(self, *args: Any, **params: Any) -> None:
        self.steps: list[tuple[str, tuple[Any, ...], dict[str, Any], int]] = []
        self.hopts: dict[str, Any] = params.pop("hopts", None) or {}
        self.sopts: dict[str, Any] = params.pop("sopts", None) or {}
        self.lopts: dict[str, Any] = params.pop("lopts", None) or {}
        self.build(*args, **params)

    def __str__(self) -> str:
        return type(self).__name__

    def build(self, *_args: Any, **_params: Any) -> None:
        """Does nothing; subclasses add nodes and links here."""

    def _step(self, name: str, args: tuple[Any, ...], keys: dict[str, Any]) -> None:
        self.steps.append((name, args, keys, here()))

    def addHost(self, name: str, **params: Any) -> str:
        """Records a host, without parameters of its own with those of `hopts`; returns its name."""
        self._step("addHost", (name,), params or dict(self.hopts))
        return name

    def addSwitch(self, name: str, **params: Any) -> str:
        """Records a switch, without parameters of its own with those of `sopts`; returns its name."""
        self._step("addSwitch", (name,), params or dict(self.sopts))
        return name

    def addNode(self, name: str, **params: Any) -> str:
        """Records a host, or a switch if `isSwitch` is set; returns its name."""
        return (
            self.addSwitch(name, **params) if params.pop("isSwitch", False) else self.addHost(name, **params)
        )

    def addLink(self, node1: str, node2: str, port1: Any = None, port2: Any = None, **params: Any) -> Any:
        """Records a link between two nodes, without parameters of its own with those of `lopts`; returns the
        number of steps so far. Ports without a number count from the number of the node's links on.
        """
        params.pop("key", None)
        port1, port2 = self.addPort(node1, node2, port1, port2)
        keys = {**(params or self.lopts), "port1": port1, "port2": port2}
        self._step("addLink", (node1, node2), keys)
        return len(self.steps)

    def addPort(self, src: str, dst: str, sport: Any = None, dport: Any = None) -> tuple[int, int]:
        """Returns the ports of a link, with the next ones for those without a number."""
        taken = self.__dict__.setdefault("ports", {})
        own, far = taken.setdefault(src, {}), taken.setdefault(dst, {})
        sport = len(own) + self.isSwitch(src) if sport is None else sport
        dport = len(far) + self.isSwitch(dst) if dport is None else dport
        own[sport], far[dport] = (dst, dport), (src, sport)
        return sport, dport

    def port(self, src: str, dst: str) -> Any:
        """Returns (port, port at the other end) of the link between two nodes, or a list for several."""
        found = [
            (sport, far[1]) for sport, far in self.__dict__.get("ports", {})[src].items() if far[0] == dst
        ]
        return found[0] if len(found) == 1 else found

    def _names(self, *steps: str) -> list[str]:
        return [args[0] for step, args, _, _ in self.steps if step in steps]

    def hosts(self, sort: bool = True) -> list[str]:
        """Returns the names of the hosts so far; sorted, or in the order of the script without `sort`."""
        return sorted(self._names("addHost")) if sort else self._names("addHost")

    def switches(self, sort: bool = True) -> list[str]:
        """Returns the names of the switches so far; sorted, or in the order of the script without `sort`."""
        return sorted(self._names("addSwitch")) if sort else self._names("addSwitch")

    def nodes(self, sort: bool = True) -> list[str]:
        """Returns the names of hosts and switches so far; sorted, or in the order of the script without
        `sort`.
        """
        found = self._names("addHost", "addSwitch")
        return sorted(found) if sort else found

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        """Returns the ends of each link so far in the order of the script, followed by its parameters if
        `withInfo` is set; the key of `withKeys` is 0.
        """
        found = [(args, keys) for step, args, keys, _ in self.steps if step == "addLink"]
        found = sorted(found, key=lambda one: list(map(natural, one[0]))) if sort else found
        keyed = [((*args, 0) if withKeys else args, keys) for args, keys in found]
        return [(*args, keys) if withInfo else args for args, keys in keyed]

    iterLinks = links

    def isSwitch(self, name: str) -> bool:
        """Returns whether the name is a switch's."""
        return name in self._names("addSwitch")

    def nodeInfo(self, name: str) -> dict[str, Any]:
        """Returns the parameters of a node, which the script may change; KeyError for an unknown node."""
        for step, args, keys, _ in self.steps:
            if step != "addLink" and args[0] == name:
                return keys
        raise KeyError(name)

    def linkInfo(self, src: str, dst: str, key: Any = None) -> dict[str, Any]:
        """Returns the parameters of the first link between two nodes in either order, which the script may
        change; KeyError if there is none. `key` has no effect.
        """
        for step, args, keys, _ in self.steps:
            if step == "addLink" and set(args) == {src, dst}:
                return keys
        raise KeyError((src, dst))

    def setNodeInfo(self, name: str, info: dict[str, Any]) -> None:
        """Replaces the parameters of a node; KeyError for an unknown node."""
        own = self.nodeInfo(name)
        own.clear()
        own.update(info)

    def setlinkInfo(self, src: str, dst: str, info: dict[str, Any], key: Any = None) -> None:
        """Replaces the parameters of the first link between two nodes but its ports; KeyError without one."""
        own = self.linkInfo(src, dst)
        ports = {key: own[key] for key in ("port1", "port2")}
        own.clear()
        own.update(info | ports)


class SingleSwitchTopo(Topo):
    """A topology of k hosts on one switch."""

    def build(self, k: int = 2, **_params: Any) -> None:
        self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), "s1")


class SingleSwitchReversedTopo(Topo):
    """A topology of k hosts on one switch, the last host at its first port."""

    def build(self, k: int = 2, **_params: Any) -> None:
        self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), "s1", port1=0, port2=k - number + 1)


class LinearTopo(Topo):
    """A topology of k switches in a row, each with n hosts; the hosts are h1, h2, ... or, if n is not 1,
    h1s1, h2s1, ...
    """

    def build(self, k: int = 2, n: int = 1, sopts: Any = None, **_params: Any) -> None:
        for i in range(1, k + 1):
            self.addSwitch(f"s{i}", **(sopts or {}))
            for j in range(1, n + 1):
                self.addLink(self.addHost(f"h{i}" if n == 1 else f"h{j}s{i}"), f"s{i}")
            if i > 1:
                self.addLink(f"s{i}", f"s{i - 1}")


class TreeTopo(Topo):
    """A tree of switches, `depth` levels with `fanout` children at each switch, with hosts as leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        self.numbers = {"s": 0, "h": 0}
        self._branch(depth, fanout)

    def _branch(self, depth: int, fanout: int) -> str:
        kind = "s" if depth else "h"
        self.numbers[kind] += 1
        node = (self.addSwitch if depth else self.addHost)(f"{kind}{self.numbers[kind]}")
        for _ in range(fanout if depth else 0):
            self.addLink(node, self._branch(depth - 1, fanout))
        return node


class TorusTopo(Topo):
    """A topology of x times y switches in a torus, with n hosts at each."""

    def build(self, x: int, y: int, n: int = 1) -> None:
        names = {(i, j): self.addSwitch(f"s{i + 1}x{j + 1}") for i in range(x) for j in range(y)}
        for (i, j), switch in names.items():
            for k in range(n):
                host = f"h{i + 1}x{j + 1}" if n == 1 else f"h{i + 1}x{j + 1}x{k + 1}"
                self.addLink(self.addHost(host), switch)
        for (i, j), switch in names.items():
            self.addLink(switch, names[(i + 1) % x, j])
            self.addLink(switch, names[i, (j + 1) % y])
