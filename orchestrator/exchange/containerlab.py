"""Imports topologies of containerlab: bridges, Linux nodes, nodes with software that vNET has, and links
between them. Omits the management network; reports other parts as left out or refuses them.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import Document, read_document
from ..software.registry import KINDS
from .clab_forms import MAGIC, Bound, magic, of_stages, with_defaults
from .files import bounded, readable, utf8
from .linux.addresses import interface
from .linux.commands import act
from .network import End, Lan, Machine, Network, Origin, Wire, insist_few, name_of
from .startup import Startup

TOOL = "containerlab"
LINUX = ("linux",)
BRIDGES = ("bridge", "ovs-bridge")
# Keys of a node that are read here, or that vNET's nodes fulfil without a key.
READ = {
    "kind",
    "group",
    "exec",
    "binds",
    "startup-config",
    "image",
    "cpu",
    "memory",
    "sysctls",
    "env",
    "network-mode",
    "stages",
}
VETH = ("veth", "veth-stitch")  # types of links that join two nodes
OUTSIDE = ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?) ?([kmg]?)(i?)b?", re.IGNORECASE)


def read(path: Path, stand_ins: bool = False) -> Network:
    """Returns the network of a topology file. Raises TopologyError with the lines of all parts that cannot be
    imported. With `stand_ins`, plain routers replace nodes that run a vendor's system.
    """
    content, defaults = with_defaults(bounded(path))
    for number, line in enumerate(content.splitlines(), 1):
        if b"{{" in line.partition(b"#")[0]:
            rule = "has a template ({{ }}), which cannot be taken over"
            raise TopologyError([Problem(str(path), number, "", "", rule, "write its result into the file")])
    reader = _Reader(path, read_document(str(path), content), stand_ins)
    network = reader.network()
    network.changed += defaults
    return network


class _Reader:
    def __init__(self, path: Path, document: Document, stand_ins: bool) -> None:
        self._directory, self._document = path.parent, document
        self._stand_ins = stand_ins
        self._problems: list[Problem] = []
        self._names: dict[str, str] = {}  # name in containerlab's file -> node name
        self._kinds: dict[str, str] = {}  # name in containerlab's file -> its kind there
        self._lab = ""  # name of the lab in containerlab's file
        self._network = Network("", f"{TOOL}, {path.name}", source=str(path), has_routes=not stand_ins)

    def network(self) -> Network:
        data = self._mapping((), readable(self._document.data))
        topology = self._mapping(("topology",), data.get("topology"))
        nodes = self._mapping(("topology", "nodes"), topology.get("nodes"))
        self._lab = str(data.get("name") or "lab")
        self._network.name = name_of(self._lab, set())
        self._left_out((), data, {"name", "topology"})
        self._left_out(("topology",), topology, {"nodes", "links", "kinds", "groups", "defaults"})
        links = topology.get("links") or []
        if not isinstance(links, list):
            self._refuse(("topology", "links"), "is no list", 'write - endpoints: ["a:eth1", "b:eth1"]')
            links = []
        insist_few(self._document.file, len(nodes) + len(links))
        for name in nodes:
            self._node(name, self._merged(topology, name, nodes[name]))
        self._inside()
        for number, link in enumerate(links):
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
        """Returns the node's keys merged over those of its group, its kind and the defaults, in this order of
        precedence; the group is the node's, else that of its kind, else the default. Joins two lists, and two
        mappings, under one key; replaces any other value. Replaces containerlab's variables of the node.
        """
        node = self._mapping(("topology", "nodes", name), own)
        defaults = self._mapping(("topology", "defaults"), topology.get("defaults"))
        groups = self._mapping(("topology", "groups"), topology.get("groups"))
        kinds = self._mapping(("topology", "kinds"), topology.get("kinds"))
        usual = str(defaults.get("group"))

        def group_of(name: str) -> dict[str, Any]:
            return self._mapping(("topology", "groups"), groups.get(name))

        kind = node.get("kind") or group_of(str(node.get("group"))).get("kind")
        kind = kind or group_of(usual).get("kind") or defaults.get("kind")
        of_kind = self._mapping(("topology", "kinds"), kinds.get(str(kind)))
        group = group_of(str(node.get("group") or of_kind.get("group") or usual))
        merged: dict[str, Any] = {}
        for layer in (defaults, of_kind, group, node):
            for key, value in layer.items():
                old = merged.get(key)
                if isinstance(value, list) and isinstance(old, list):
                    merged[key] = [*old, *value]
                else:
                    both = isinstance(value, dict) and isinstance(old, dict)
                    merged[key] = {**old, **value} if both else value  # type: ignore[dict-item]
        merged["kind"] = kind
        wanted = node.get("group") or of_kind.get("group") or defaults.get("group")
        if wanted is not None and str(wanted) not in groups:
            self._leave(("topology", "nodes", name), f"its group {wanted!s:.60}, which the file has not")
        for key in MAGIC & merged.keys():
            merged[key] = magic(merged[key], self._lab, name)
        return merged

    def _node(self, theirs: str, keys: dict[str, Any]) -> None:
        path = ("topology", "nodes", theirs)
        name = name_of(theirs, set(self._names.values()))
        self._names[theirs] = name
        if name != theirs:
            self._network.changed.append(f"node {theirs} is {name} here")
        kind, image = str(keys.get("kind")), str(keys.get("image", ""))
        self._kinds[theirs] = kind
        if kind in BRIDGES:
            self._network.lans[name] = Lan(name, origin=self._origin(path))
            inside = {"network-mode"} if "|" in theirs else set()  # keys of the node behind the "|"
            self._left_out(path, keys, {"kind", "group"} | inside)
            return
        known = _kind_of(kind, image)
        if known is None and kind not in LINUX and self._stand_ins:
            self._network.machines[name] = Machine(name, forward=True, origin=self._origin(path))
            self._leave(path, f"its system ({kind}): a plain router stands for it")
            return
        if known is None and kind not in LINUX:
            taken_over = sorted({*LINUX, *BRIDGES, *(k.name for k in KINDS.values() if k.foreign)})
            remedy = f"kinds that can be: {', '.join(taken_over)}; or use --stand-ins"
            self._refuse((*path, "kind"), f'the kind "{kind}" cannot be taken over', remedy)
            return
        self._left_out(path, keys, READ)
        machine = Machine(name, kind=known, origin=self._origin(path))
        self._network.machines[name] = machine
        if str(keys.get("network-mode", "none")) not in ("none", "bridge"):
            rule = "a network of another container or of the machine cannot be taken over"
            self._refuse((*path, "network-mode"), rule, "take it away", str(keys["network-mode"]))
        self._limits(path, machine, keys)
        if known is not None and (foreign := KINDS[known].foreign):
            machine.forward = foreign.forwards
            machine.config = self._config(path, theirs, keys, foreign.file)
            if machine.config:
                machine.addresses = {port: list(a) for port, a in foreign.addresses(machine.config).items()}
            else:
                machine.kind = None
        elif image:
            self._leave((*path, "image"), f"{image}: a node has the programs of this machine")
        self._started(machine, path, theirs, keys)

    def _inside(self) -> None:
        """Joins each bridge that is inside of a node (`BRIDGE|NODE`) with that node, if the node has an
        address on the bridge; else reports that it is not joined.
        """
        for theirs, name in self._names.items():
            bridge, mark, node = theirs.partition("|")
            if name not in self._network.lans or not mark:
                continue
            machine = self._network.machines.get(self._names.get(node, ""))
            if machine is not None and machine.addresses.get(bridge):
                self._network.lans[name].members.append((machine.name, bridge))
            else:
                said = f"{bridge} inside of {node} is the segment {name} here, without {node}"
                self._network.changed.append(said)

    def _limits(self, path: tuple[str, ...], machine: Machine, keys: dict[str, Any]) -> None:
        """Sets the machine's limits of CPU and memory, and its forwarding from `sysctls`. Reports wrong
        limits, other sysctls and all variables of `env` as left out.
        """
        if isinstance(cpu := keys.get("cpu"), int | float) and not isinstance(cpu, bool):
            machine.keys["cpu_limit"] = f"{cpu:g} cores" if cpu != 1 else "1 core"
        elif cpu is not None:
            self._leave((*path, "cpu"), f"{cpu} is no number of cores")
        if (memory := keys.get("memory")) is not None:
            if found := _MEMORY.fullmatch(str(memory)):
                machine.keys["memory_limit"] = f"{found[1]} {_unit(found[2])}"
            else:
                self._leave((*path, "memory"), f"{memory} is no size that is known")
        for name, value in self._mapping((*path, "sysctls"), keys.get("sysctls")).items():
            if act(machine, ["sysctl", f"{name}={value}"]) is None:
                self._leave((*path, "sysctls"), f"{name}: no counterpart")
        for name in self._mapping((*path, "env"), keys.get("env")):
            self._leave((*path, "env"), f"{name}: nothing but the node's own commands has it")

    def _started(self, machine: Machine, path: tuple[str, ...], theirs: str, keys: dict[str, Any]) -> None:
        """Applies the effects of the node's `exec` commands to the machine, without running programs. Reports
        commands without a counterpart, and addresses of `lo` of a node without software, as left out.
        """
        startup = Startup(machine, theirs, lambda line: f"line {line}")
        files = startup.files = Bound(self._directory, self._texts(path, keys, "binds"))
        before, said = of_stages(keys.get("stages"))
        for one in said:
            self._leave((*path, "stages"), one)
        self._environment = {
            str(k): str(v) for k, v in self._mapping((*path, "env"), keys.get("env")).items()
        }
        for stage, command in before:  # commands of `exec` are run after these
            self._command(startup, (*path, "stages", stage), command)
        for number, command in enumerate(self._texts(path, keys, "exec")):
            self._command(startup, (*path, "exec", number), command)
        if machine.kind is None:  # another one has reports on its configuration
            for one in files.unused():
                self._leave((*path, "binds"), one)
            if keys.get("startup-config") is not None:
                self._leave((*path, "startup-config"), f"no program of {theirs} reads it")
        self._network.left += startup.left
        for line, value, rule, remedy in startup.problems:
            self._problems.append(Problem(self._document.file, line, "", value, rule, remedy))
        for address in machine.addresses.pop("lo", []) if machine.kind is None else []:
            self._leave(path, f"the address {address} of lo")

    def _config(self, path: tuple[str, ...], theirs: str, keys: dict[str, Any], inside: str) -> str:
        """Returns the configuration of the node's program, from startup-config or, before it, from the file
        that is bound to the path `inside`. Returns "" and reports it as left out if there is none; "" and
        refuses it if the file cannot be read. Reports other binds as left out.
        """
        place = keys.get("startup-config")
        for bind in self._texts(path, keys, "binds"):
            outside, _, to = str(bind).partition(":")
            target = to.partition(":")[0].rstrip("/")
            if target == inside:
                place = outside
            elif inside.startswith(f"{target}/"):
                place = f"{outside}{inside.removeprefix(target)}"
            else:
                self._leave((*path, "binds"), f"{bind:.100}: not bound into the node")
        if place is None:
            self._leave(
                path, f"its program has no configuration (no bind to {inside}): a router without protocols"
            )
            return ""
        file = self._directory / str(place)
        try:
            return utf8(file)
        except TopologyError as error:
            (problem,) = error.problems
            self._refuse(path, f"its configuration {file} {problem.rule}", problem.remedy)
            return ""

    def _texts(self, path: tuple[str | int, ...], keys: dict[str, Any], key: str) -> list[str]:
        """Returns the texts of a node's list; refuses a value that is no list, and parts that are no
        texts.
        """
        listed = keys.get(key) or []
        if not isinstance(listed, list):
            self._refuse((*path, key), "is no list", f'write {key}: ["..."]')
            return []
        for number, one in enumerate(listed):
            if isinstance(one, dict | list) or one is None:
                rule = "is no text: YAML reads it as a mapping, a list or nothing"
                self._refuse((*path, key, number), rule, "put it in quotes")
        return [str(one) for one in listed if not isinstance(one, dict | list) and one is not None]

    def _command(self, startup: Startup, path: tuple[str | int, ...], command: str) -> None:
        """Applies the effects of one command to the machine; splits it by shlex, since containerlab runs it
        without a shell. Refuses a command with open quotes.
        """
        try:
            words = shlex.split(command)
        except ValueError as error:
            self._refuse(path, f"is no command ({error})", "mend its quotes", command[:60])
            return
        if words:
            line = self._line(path)
            startup.place = lambda _line: f"line {line}"
            startup.command(words, line, self._environment)

    def _line(self, path: tuple[str | int, ...]) -> int:
        return self._document.problem(path, "", "", "").line

    def _origin(self, path: tuple[str | int, ...]) -> Origin:
        return Origin(self._document.file, self._line(path))

    def _link(self, number: int, link: Any) -> None:
        path: tuple[str | int, ...] = ("topology", "links", number)
        keys = self._mapping(path, link)
        if (kind := str(keys.get("type", "veth"))) not in VETH:
            if kind not in OUTSIDE:
                self._refuse(
                    (*path, "type"), "is no type of link", f"types: {', '.join((*VETH, *OUTSIDE))}", kind
                )
            self._leave(path, f"a link of type {kind}")
            return
        listed = keys.get("endpoints")
        given = listed if isinstance(listed, list) else []
        if len(given) != 2:
            self._refuse(path, "a link has two endpoints", 'write endpoints: ["a:eth1", "b:eth1"]')
            return
        self._left_out(path, keys, {"endpoints", "type", "mtu", "ipv4", "ipv6"})
        ends = [self._end(path, one, self._brief(path, keys, number)) for number, one in enumerate(given)]
        first, second = ends
        if first is None or second is None:
            return
        mtu = keys.get("mtu")
        if mtu is not None and not str(mtu).isdecimal():
            self._refuse((*path, "mtu"), "is no size of a frame", "write mtu: 1500", str(mtu)[:60])
            return
        self._network.join(Wire((first, second), int(mtu) if mtu else None, origin=self._origin(path)))

    def _brief(self, path: tuple[str | int, ...], keys: dict[str, Any], number: int) -> dict[str, Any]:
        """Returns the addresses of the link's end `number`, by family, from lists with one address for each
        end.
        """
        found: dict[str, Any] = {}
        for family in ("ipv4", "ipv6"):
            given = keys.get(family) or []
            if not isinstance(given, list) or len(given) > 2:
                self._refuse(
                    (*path, family), "is no list of two addresses", f'write {family}: ["", "10.0.0.1/24"]'
                )
            elif number < len(given) and given[number]:
                found[family] = given[number]
        return found

    def _end(self, path: tuple[str | int, ...], end: Any, brief: dict[str, Any]) -> End | None:
        own: dict[str, Any] = end if isinstance(end, dict) else {}
        if own:
            node, port = str(own.get("node")), str(own.get("interface"))
        else:
            node, _, port = str(end).partition(":")
        if node in OUTSIDE:
            self._leave(path, f"joins {node}, which is outside of the lab")
            return None
        if node not in self._names:
            self._refuse(path, f'names the node "{node}", which the file has not', "mend the name")
            return None
        machine = self._network.machines.get(self._names[node])
        for key, value in sorted((brief | own).items()):
            if key in ("node", "interface"):
                continue
            text = interface(str(value)) if key in ("ipv4", "ipv6") else None
            if text is None or machine is None:
                self._leave(path, f"{key} of {node}:{port} ({str(value)[:60]}): no counterpart")
            elif text not in (addresses := machine.addresses.setdefault(port, [])):
                addresses.append(text)
                if self._kinds[node] in LINUX:
                    said = f"{key} of {node}:{port} counts here; containerlab ignores it for the kind linux"
                    self._network.changed.append(f"line {self._line(path)}: {said}")
        return self._names[node], port


def _unit(letter: str) -> str:
    """Returns the unit for Docker's letter of a size ("", k, m, g in either case), always a binary unit."""
    return {"": "B", "k": "KiB", "m": "MiB", "g": "GiB"}[letter.lower()]


def _kind_of(kind: str, image: str) -> str | None:
    """Returns the software kind that recognises the node's kind, or its image if the node is plain Linux;
    None if there is none.
    """
    word = image if kind in LINUX else kind
    return next((k.name for k in KINDS.values() if k.foreign and k.foreign.recognises(word)), None)
