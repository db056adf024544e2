"""Topologies of netlab: nodes by device and module, links in all their forms.

What netlab would make of it (addresses by pools, configurations by templates) the plan and the routers do:
network and protocols carry over, the protocols' settings do not.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import Document, read_document
from ..topology.loading import read_bytes
from .daemons import DAEMONS
from .network import End, Lan, Machine, Network, Route, Wire, name_of

TOOL = "netlab"
HOSTS, ROUTERS, BRIDGES = ("linux", "none"), DAEMONS.devices, ("bridge",)
MODULES = tuple(word for word in DAEMONS.protocols if word.islower())
SETTINGS = {"ebgp.multihop", "files"}  # plugins that add no node, as those named after a module
READ = {"plugin", "prefix", "nodes", "links", "groups", "module", "name", "defaults", *MODULES}
SILENT = {"message", "validate", "provider", "version"}  # not of the network
NODE, LINK = (
    {"device", "module", "name", "role", *MODULES},
    {"prefix", "mtu", "tc", "name", "interfaces", "type", "bridge"},
)
# Of a link's impairment: ours, and the unit of a number without one.
TC = {
    "delay": ("delay", "ms"), "jitter": ("jitter", "ms"), "loss": ("loss", "%"), "corrupt": ("corrupt", "%"),
    "duplicate": ("duplicate", "%"), "reorder": ("reorder", "%"), "rate": ("rate", "kbit/s"),
}  # fmt: skip
Place = tuple[str | int, ...]


def read(path: Path, stand_ins: bool = False) -> Network:
    """The network of a topology; TopologyError with the lines of what cannot be taken over.

    `stand_ins`: our routers in place of other devices, as by netlab's own `-d`.
    """
    return _Reader(path, read_document(str(path), read_bytes(path)), stand_ins).network()


class _Reader:
    def __init__(self, path: Path, document: Document, stand_ins: bool) -> None:
        self._document, self._stand_ins = document, stand_ins
        self._data = _nested(document.data)
        self._problems: list[Problem] = []
        self._names: dict[str, str] = {}  # theirs -> ours
        self._hosts: set[str] = set()
        self._network = Network(
            name_of(str(self._data.get("name") or path.stem), set()), f"{TOOL}, {path.name}"
        )

    def network(self) -> Network:
        data = self._data
        for key in data.keys() - READ - SILENT:
            if key in ("vlans", "vrfs", "vxlan", "evpn", "mpls", "srv6", "components"):
                self._refuse((key,), f"{key} cannot be taken over", "take it out of the topology")
            else:
                self._leave((key,), f"{key}: no counterpart")
        for module in MODULES:
            for key in sorted(_mapping(data.get(module)).keys() - {"as", "as_list"}):
                self._leave((module,), f"{module}.{key}: no counterpart")
        for key in sorted(_mapping(data.get("defaults")).keys() - {"device", "bgp"}):
            self._leave(("defaults",), f"defaults.{key}: no counterpart")
        for plugin in _words(data.get("plugin")):
            if plugin in SETTINGS or plugin.partition(".")[0] in MODULES:
                self._leave(("plugin",), f"the plugin {plugin}")
            else:
                remedy = f"plugins that can be: {', '.join(sorted(SETTINGS))}"
                self._refuse(("plugin",), f"the plugin {plugin} cannot be taken over", remedy)
        for place, name, keys in _entries(data.get("nodes")):
            self._node(("nodes", place), name, keys)
        for group, about in _mapping(data.get("groups")).items():
            members = _mapping(about).get("members") if _mapping(about).get("_auto_create") else None
            for name in members if isinstance(members, list) else []:
                if str(name) not in self._names:
                    self._node(("groups", group), str(name), {})
        links = data.get("links")
        for number, link in enumerate(links if isinstance(links, list) else []):
            self._link(number, link)
        if not self._names:
            self._refuse((), "has no nodes", "name a topology of netlab")
        if self._problems:
            raise TopologyError(self._problems)
        self._ways_out()
        self._network.left.sort()
        return self._network

    def _refuse(self, path: Place, rule: str, remedy: str, value: str = "") -> None:
        self._problems.append(self._document.problem(self._place(path), value, rule, remedy))

    def _place(self, path: Place) -> Place:
        """Where the file has it: maybe in a dotted key."""
        if path in self._document.lines:
            return path
        wanted = ".".join(map(str, path))
        return next((one for one in self._document.lines if ".".join(map(str, one)).startswith(wanted)), path)

    def _leave(self, path: Place, said: str) -> None:
        line = self._document.problem(self._place(path), "", "", "").line
        self._network.left.append(f"line {line}: {said}")

    def _of_groups(self, name: str) -> dict[str, Any]:
        """What the node's groups say of it, the last one last."""
        found: dict[str, Any] = {}
        for group in _mapping(self._data.get("groups")).values():
            keys = _nested(group)
            if name in (keys.get("members") or []):
                found |= {k: v for k, v in {**keys, **_nested(keys.get("node_data"))}.items() if k in NODE}
        return found

    def _node(self, path: Place, theirs: str, own: dict[str, Any]) -> None:
        keys = {**self._of_groups(theirs), **own}
        device = str(keys.get("device") or _mapping(self._data.get("defaults")).get("device") or "")
        name = self._names[theirs] = name_of(theirs, set(self._names.values()))
        if name != theirs:
            self._network.changed.append(f"node {theirs} is {name} here")
        if keys.get("role") in BRIDGES or device in BRIDGES:
            self._network.lans[name] = Lan(name)
            return
        known = device in (*HOSTS, *ROUTERS)
        if not known and not self._stand_ins:
            remedy = f"devices that can be: {', '.join((*ROUTERS, *HOSTS))}; or use --stand-ins"
            self._refuse(
                (*path, "device"),
                f"the device of {theirs} cannot be taken over",
                remedy,
                device or "none given",
            )
        elif not known and device:
            self._leave((*path, "device"), f"{theirs}: its system ({device}): our router stands for it")
        for key in sorted(own.keys() - NODE):
            self._leave((*path, key), f"{theirs}: {key}")
        machine = self._network.machines[name] = Machine(name)
        if device in HOSTS or keys.get("role") == "host":
            self._hosts.add(name)
            return
        machine.forward = True
        self._protocols(path, theirs, keys, machine)

    def _protocols(self, path: Place, theirs: str, keys: dict[str, Any], machine: Machine) -> None:
        modules = _words(keys["module"] if "module" in keys else self._data.get("module"))
        for module in modules:
            if module not in MODULES:
                rule, remedy = (
                    f"the module {module} of {theirs} cannot be taken over",
                    f"modules that can be: {', '.join(MODULES)}",
                )
                self._refuse((*path, "module"), rule, remedy)
        wanted: dict[str, Any] = {DAEMONS.protocols[one]: {} for one in MODULES if one in modules}
        if "bgp" in modules:
            number = self._as_number(theirs, keys)
            if number is None:
                self._refuse(path, f"{theirs} has BGP and no AS", "write `bgp.as`")
            wanted["bgp"] = {"as": number}
        if wanted:
            machine.software = {"router": DAEMONS.software(wanted)}
        for module in MODULES:
            for key in sorted(_mapping(keys.get(module)).keys() - {"as"}):
                self._leave((*path, module), f"{theirs}: {module}.{key}: the room's own setting stands")

    def _as_number(self, theirs: str, keys: dict[str, Any]) -> int | None:
        everywhere = {
            **_mapping(_mapping(self._data.get("defaults")).get("bgp")),
            **_mapping(self._data.get("bgp")),
        }
        for number, members in _mapping(everywhere.get("as_list")).items():
            if theirs in (_mapping(members).get("members") or []):
                return int(number)
        found = _mapping(keys.get("bgp")).get("as", everywhere.get("as"))
        return int(found) if isinstance(found, int | str) and str(found).isdigit() else None

    def _link(self, number: int, link: Any) -> None:
        path: Place = ("links", number)
        if isinstance(link, str):
            keys: dict[str, Any] = dict.fromkeys(link.split("-"))
        else:
            keys = _nested(link)
        listed = [
            _mapping(one) if isinstance(one, dict) else {"node": one} for one in keys.get("interfaces") or []
        ]
        members = [(str(one.get("node")), one) for one in listed]
        members += [(key, _mapping(value)) for key, value in keys.items() if key in self._names]
        for key in sorted(keys.keys() - LINK - self._names.keys()):
            if not isinstance(link, str) and key.split(".")[0] not in ("vlan", "vrf", "lag"):
                self._leave((*path, key), f"{key} of a link")
            else:
                self._refuse(path, f"{key} cannot be taken over", "name nodes of the file", key)
        if any(name not in self._names for name, _ in members) or not members:
            self._refuse(path, "does not join nodes of the file", "name them as `nodes` does")
        elif not self._problems:
            self._joined(path, number, keys, members)

    def _joined(
        self, path: Place, number: int, keys: dict[str, Any], members: list[tuple[str, dict[str, Any]]]
    ) -> None:
        ends: list[End] = [
            (self._names[name], f"l{number}-{place}") for place, (name, _) in enumerate(members)
        ]
        for key in sorted({key for _, own in members for key in own} - {"node", "ipv4"}):
            self._leave(path, f"{key} of an interface")
        self._addresses(path, keys.get("prefix"), ends, [own for _, own in members])
        quantities = self._quantities(path, _mapping(keys.get("tc")))
        both = {"both": quantities} if quantities else {}
        if len(ends) == 2:
            self._network.join(Wire((ends[0], ends[1]), keys.get("mtu"), impairments=both))
            return
        name = name_of(
            str(keys.get("bridge") or f"lan-{number + 1}"), {*self._names.values(), *self._network.lans}
        )
        self._network.lans[name] = Lan(name)
        for end in ends:
            self._network.join(Wire((end, (name, "")), impairments=dict(both)))

    def _addresses(self, path: Place, prefix: Any, ends: list[End], own: list[dict[str, Any]]) -> None:
        """Sets addresses of the link's prefix, from the lowest, unless the file gives them."""
        prefix = _mapping(self._data.get("prefix")).get(str(prefix), prefix)  # by its name
        text = str(prefix.get("ipv4") if isinstance(prefix, dict) else prefix)
        if text.lower() in ("none", "true", "false"):
            if text.lower() != "none":
                self._leave(path, f"prefix {text.lower()}: the link has a subnet of the plan's")
            return
        try:
            subnet = ipaddress.ip_network(text)
            given = [
                ipaddress.ip_interface(str(one["ipv4"])).ip if "." in str(one.get("ipv4")) else None
                for one in own
            ]
        except ValueError as error:
            self._refuse(
                path, f"has no subnet or address ({error})", "write for example prefix: 10.0.0.0/24", text
            )
            return
        free = (address for address in subnet.hosts() if address not in given)
        for (node, port), said in zip(ends, given, strict=True):
            if node in self._network.machines and (address := said or next(free, None)) is not None:
                self._network.machines[node].addresses[port] = [f"{address}/{subnet.prefixlen}"]

    def _quantities(self, path: Place, tc: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in tc.items():
            if key not in TC:
                self._leave(path, f"tc.{key}")
                continue
            ours, unit = TC[key]
            text = str(value)
            number = text.rstrip("abcdefghijklmnopqrstuvwxyz %")
            found[ours] = f"{number} {text[len(number) :].strip() or unit}"
        return found

    def _ways_out(self) -> None:
        """Hosts have a default route to the first router beside them, where the plan gives none."""
        if not any(machine.software for machine in self._network.machines.values()):
            return
        groups = [[node for node, _ in lan.members] for lan in self._network.lans.values()]
        groups += [[node for node, _ in wire.ends] for wire in self._network.wires]
        for host in sorted(self._hosts):
            beside = [node for group in groups if host in group for node in group if node != host]
            if router := next((node for node in beside if self._network.machines[node].forward), None):
                self._network.machines[host].routes.append(Route("default", router))


def _entries(nodes: Any) -> list[tuple[str | int, str, dict[str, Any]]]:
    """Nodes in all their forms: a mapping, a list of names or mappings, names in one text."""
    if isinstance(nodes, str):
        nodes = nodes.split()
    if isinstance(nodes, dict):
        return [(name, str(name), _nested(keys)) for name, keys in nodes.items()]
    found: list[tuple[str | int, str, dict[str, Any]]] = []
    for number, one in enumerate(nodes if isinstance(nodes, list) else []):
        keys = _nested(one)
        found.append((number, str(keys.get("name") or one), keys))
    return found


def _nested(value: Any) -> dict[str, Any]:
    """A mapping whose dotted keys are mappings in mappings, as netlab reads them."""
    found: dict[str, Any] = {}
    for key, content in _mapping(value).items():
        *way, last = str(key).split(".")
        place = found
        for word in way:
            inner = place.get(word)
            place[word] = inner = dict(inner) if isinstance(inner, dict) else {}
            place = inner
        merged = isinstance(place.get(last), dict) and isinstance(content, dict)
        place[last] = {**place[last], **content} if merged else content
    return found


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)] if value else []
