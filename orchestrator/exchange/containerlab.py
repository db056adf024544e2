"""Topologies of containerlab: nodes of the kinds that this machine has programs for, links between them.

Its management network has no counterpart; what a file says of images, ports and the like is
listed as left out.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import Document, read_document
from ..software.registry import KINDS
from ..topology.loading import read_bytes
from .commands import commands, understood
from .network import End, Lan, Machine, Network, Wire, name_of

TOOL = "containerlab"
LINUX = ("linux",)
BRIDGES = ("bridge", "ovs-bridge")
# Of a node: what is read here, and what every node of ours has or needs no word for.
READ = {"kind", "group", "exec", "binds", "startup-config", "image", "mtu"}


def read(path: Path, stand_ins: bool = False) -> Network:
    """The network of a topology file; TopologyError with the line of what cannot be taken over.

    `stand_ins`: plain routers in place of nodes with a system of their own.
    """
    return _Reader(path, read_document(str(path), read_bytes(path)), stand_ins).network()


class _Reader:
    def __init__(self, path: Path, document: Document, stand_ins: bool) -> None:
        self._directory, self._document = path.parent, document
        self._stand_ins = stand_ins
        self._problems: list[Problem] = []
        self._names: dict[str, str] = {}  # theirs -> ours
        self._network = Network("", f"{TOOL}, {path.name}")

    def network(self) -> Network:
        data = self._mapping((), self._document.data)
        topology = self._mapping(("topology",), data.get("topology"))
        nodes = self._mapping(("topology", "nodes"), topology.get("nodes"))
        self._network.name = name_of(str(data.get("name") or "lab"), set())
        self._left_out((), data, {"name", "topology"})
        self._left_out(("topology",), topology, {"nodes", "links", "kinds", "groups", "defaults"})
        for name in nodes:
            self._node(name, self._merged(topology, name, nodes[name]))
        links = topology.get("links") or []
        for number, link in enumerate(links if isinstance(links, list) else []):
            self._link(number, link)
        if not nodes:
            self._refuse(("topology",), "has no nodes", "name a containerlab topology (*.clab.yml)")
        if self._problems:
            raise TopologyError(self._problems)
        return self._network

    def _refuse(self, path: tuple[str | int, ...], rule: str, remedy: str, value: str = "") -> None:
        self._problems.append(self._document.problem(path, value, rule, remedy))

    def _mapping(self, path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._refuse(path, "is no mapping", "see containerlab's topology definition file")
            return {}
        return value

    def _left_out(self, path: tuple[str | int, ...], found: dict[str, Any], known: set[str]) -> None:
        for key in found.keys() - known:
            self._leave((*path, key), "no counterpart")
        self._network.left.sort()

    def _leave(self, path: tuple[str | int, ...], why: str) -> None:
        line = self._document.problem(path, "", "", "").line
        self._network.left.append(f"line {line}: {'.'.join(map(str, path))}: {why}")

    def _merged(self, topology: dict[str, Any], name: str, own: Any) -> dict[str, Any]:
        """The node's keys over those of its group, its kind and the defaults; lists are joined."""
        node = self._mapping(("topology", "nodes", name), own)
        defaults = self._mapping(("topology", "defaults"), topology.get("defaults"))
        groups = self._mapping(("topology", "groups"), topology.get("groups"))
        kinds = self._mapping(("topology", "kinds"), topology.get("kinds"))
        group = self._mapping(
            ("topology", "groups"), groups.get(str(node.get("group") or defaults.get("group")))
        )
        kind = node.get("kind") or group.get("kind") or defaults.get("kind")
        merged: dict[str, Any] = {}
        for layer in (defaults, self._mapping(("topology", "kinds"), kinds.get(str(kind))), group, node):
            for key, value in layer.items():
                both = isinstance(value, list) and isinstance(merged.get(key), list)
                merged[key] = [*merged[key], *value] if both else value
        merged["kind"] = kind
        return merged

    def _node(self, theirs: str, keys: dict[str, Any]) -> None:
        path = ("topology", "nodes", theirs)
        name = name_of(theirs, set(self._names.values()))
        self._names[theirs] = name
        if name != theirs:
            self._network.changed.append(f"node {theirs} is {name} here")
        kind, image = str(keys.get("kind")), str(keys.get("image", ""))
        if kind in BRIDGES:
            self._network.lans[name] = Lan(name)
            return
        known = _kind_of(kind, image)
        if known is None and kind not in LINUX and self._stand_ins:
            self._network.machines[name] = Machine(name, forward=True)
            self._leave(path, f"its system ({kind}): a plain router stands for it")
            return
        if known is None and kind not in LINUX:
            taken_over = sorted({*LINUX, *BRIDGES, *(k.name for k in KINDS.values() if k.foreign)})
            remedy = f"kinds that can be: {', '.join(taken_over)}; or use --stand-ins"
            self._refuse((*path, "kind"), f'the kind "{kind}" cannot be taken over', remedy)
            return
        self._left_out(path, keys, READ)
        machine = Machine(name, kind=known)
        self._network.machines[name] = machine
        if known is not None and (foreign := KINDS[known].foreign):
            machine.forward = foreign.forwards
            machine.config = self._config(path, theirs, keys, foreign.file)
            if machine.config:
                machine.addresses = {port: list(a) for port, a in foreign.addresses(machine.config).items()}
            else:
                machine.kind = None
        elif image:
            self._leave((*path, "image"), f"{image}: a node has the programs of this machine")
        for number, command in enumerate(keys.get("exec") or []):
            self._command(machine, (*path, "exec", number), str(command))

    def _config(self, path: tuple[str, ...], theirs: str, keys: dict[str, Any], inside: str) -> str:
        """The text of a program's configuration: the startup-config, or what is bound to its place."""
        place = keys.get("startup-config")
        for bind in keys.get("binds") or []:
            outside, _, to = str(bind).partition(":")
            target = to.partition(":")[0].rstrip("/")
            if target == inside:
                place = outside
            elif inside.startswith(f"{target}/"):
                place = f"{outside}{inside.removeprefix(target)}"
            else:
                self._leave((*path, "binds"), f"{bind}: not bound into the node")
        if place is None:
            self._leave(
                path, f"its program has no configuration (no bind to {inside}): a router without protocols"
            )
            return ""
        file = self._directory / str(place).replace("__clabNodeName__", theirs)
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "not text"
            self._refuse(path, f"its configuration {file} cannot be read ({said})", "put it there")
            return ""

    def _command(self, machine: Machine, path: tuple[str | int, ...], command: str) -> None:
        """Addresses, routes and forwarding that a command gives; others are left out."""
        for words in commands(command):
            if words[:2] in (["sh", "-c"], ["bash", "-c"]) and len(words) == 3:
                self._command(machine, path, words[2])
            elif not understood(machine, words):
                self._leave(path, f"`{shlex.join(words)}` is not run")

    def _link(self, number: int, link: Any) -> None:
        path: tuple[str | int, ...] = ("topology", "links", number)
        keys = self._mapping(path, link)
        if str(keys.get("type", "veth")) != "veth":
            self._leave(path, f"a link of type {keys['type']}")
            return
        ends = [self._end(path, one) for one in keys.get("endpoints") or []]
        self._left_out(path, keys, {"endpoints", "type", "mtu"})
        if len(ends) != 2 or None in ends:
            if len(ends) != 2:
                self._refuse(path, "a link has two endpoints", 'write endpoints: ["a:eth1", "b:eth1"]')
            return
        first, second = (end for end in ends if end is not None)
        self._network.join(Wire((first, second), int(keys["mtu"]) if keys.get("mtu") else None))

    def _end(self, path: tuple[str | int, ...], end: Any) -> End | None:
        if isinstance(end, dict):
            node, port = str(end.get("node")), str(end.get("interface"))
        else:
            node, _, port = str(end).partition(":")
        if node in ("host", "mgmt-net", "macvlan"):
            self._leave(path, f"joins {node}, which is outside of the lab")
            return None
        if node not in self._names:
            self._refuse(path, f'names the node "{node}", which the file has not', "mend the name")
            return None
        return self._names[node], port


def _kind_of(kind: str, image: str) -> str | None:
    """The software that a node's program is here: by its kind, or of any Linux by its image."""
    word = image if kind in LINUX else kind
    return next((k.name for k in KINDS.values() if k.foreign and k.foreign.recognises(word)), None)
