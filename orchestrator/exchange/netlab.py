"""Imports topologies of netlab: nodes by device and module, links in all their forms, pings of validation
tests as expectations, and other tests as notes.

The plan and the routers do what netlab would generate (addresses from pools, configurations from templates).
Network and protocols are imported, the settings of protocols are left out.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import Document, read_document
from . import netlab_addresses as at
from .daemons import DAEMONS
from .files import bounded, readable
from .netlab_forms import (
    Groups,
    Place,
    ends_of,
    including,
    link_entries,
    mapping,
    merged,
    nested,
    node_entries,
    words,
)
from .netlab_pools import DEFAULTS, KEYS, Pools, has_ipv6
from .netlab_tests import probes
from .network import End, Lan, Machine, Network, Origin, Route, Wire, insist_few, name_of

TOOL = "netlab"
HOSTS, ROUTERS, BRIDGES = ("linux", "none"), DAEMONS.devices, ("bridge",)
MODULES = tuple(word for word in DAEMONS.protocols if word.islower())
# plugins that add no nodes; plugins named after a module add none either
SETTINGS = {"ebgp.multihop", "files"}
READ = {"validate", "plugin", "prefix", "nodes", "links", "groups", "module", "name", "defaults", *MODULES}
SILENT = {"message", "provider", "version"}  # keys that do not describe the network
BESIDE = "topology-defaults.yml"  # file that netlab merges under the key `defaults`
NODE, LINK = (
    {"device", "module", "name", "role", "group", "id", "mtu", *MODULES},
    {"prefix", "mtu", "tc", "name", "interfaces", "type", "bridge", "linkindex", "disable", "shutdown"},
)
OF_GROUP = NODE - {"group", "name"}  # keys that a group gives its nodes
FORWARDING = ("router", "gateway")  # roles of nodes that forward
LINKS = ("lan", "p2p", "stub")  # types of links
INTERFACE = {"node", "ipv4", "ipv6", "mtu", "tc", "shutdown"}
SIDES = ("forward", "reverse")
# netlab's name of an impairment -> the topology's key, and the unit of a number without a unit.
TC = {
    "delay": ("delay", "ms"), "jitter": ("jitter", "ms"), "loss": ("loss", "%"), "corrupt": ("corrupt", "%"),
    "duplicate": ("duplicate", "%"), "reorder": ("reorder", "%"), "rate": ("rate", "kbit/s"),
}  # fmt: skip


def read(path: Path, stand_ins: bool = False) -> Network:
    """Returns the network of a topology file. Raises TopologyError with the lines of all parts that cannot be
    imported. With `stand_ins`, vNET's routers replace other devices, as with netlab's own option `-d`.
    """
    return _Reader(path, read_document(str(path), bounded(path)), stand_ins).network()


class _Reader:
    def __init__(self, path: Path, document: Document, stand_ins: bool) -> None:
        self._document, self._stand_ins = document, stand_ins
        self._data = readable(nested(document.data))
        self._problems: list[Problem] = []
        self._names: dict[str, str] = {}  # name in netlab's file -> node name
        self._hosts: set[str] = set()
        self._mtus: dict[str, Any] = {}  # name in netlab's file -> MTU
        self._pools: Pools | None = None
        self._prefixes = set(map(str, mapping(self._data.get("prefix"))))  # those that no link has
        name = name_of(str(self._data.get("name") or path.stem), set())
        self._network = Network(name, f"{TOOL}, {path.name}", source=str(path))
        if (path.parent / BESIDE).is_file() and path.name != BESIDE:
            self._network.left.append(f"{BESIDE}: defaults beside the file are not read")

    def network(self) -> Network:
        data = self._data
        self._with_pools()
        for place in including(data):
            rule, remedy = "a part of another file cannot be taken over", "write its content into the file"
            self._refuse(place, rule, remedy, "_include")
        for key in data.keys() - READ - SILENT - {"_include"}:
            if key == "addressing" and self._pools is not None:
                continue
            if key in ("vlans", "vrfs", "vxlan", "evpn", "mpls", "srv6", "components"):
                self._refuse((key,), f"{key} cannot be taken over", "take it out of the topology")
            else:
                self._leave((key,), f"{key}: no counterpart")
        for module in MODULES:
            for key in sorted(mapping(data.get(module)).keys() - {"as", "as_list"}):
                self._leave((module,), f"{module}.{key}: no counterpart")
            for system, keys in mapping(mapping(data.get(module)).get("as_list")).items():
                for key in sorted(mapping(keys).keys() - {"members"}):
                    self._leave((module,), f"{module}.as_list.{system}.{key}: no counterpart")
        for key in sorted(mapping(data.get("defaults")).keys() - {"device", "bgp"}):
            if key != "interfaces" or mapping(data["defaults"][key]).keys() - {"mtu"}:
                self._leave(("defaults",), f"defaults.{key}: no counterpart")
        for plugin in words(data.get("plugin")):
            if plugin in SETTINGS or plugin.partition(".")[0] in MODULES:
                self._leave(("plugin",), f"the plugin {plugin}")
            else:
                remedy = f"plugins that can be: {', '.join(sorted(SETTINGS))}"
                self._refuse(("plugin",), f"the plugin {plugin} cannot be taken over", remedy)
        entries = node_entries(data.get("nodes"))
        links = list(link_entries(data.get("links")))
        insist_few(self._document.file, len(entries) + len(links) + len(mapping(data.get("groups"))))
        self._groups = Groups(data, entries, self._refuse)
        made = [(name, None) for _, name in self._groups.made]
        self._numbers = at.numbers([*((name, keys.get("id")) for _, name, keys in entries), *made])
        for place, name, keys in entries:
            self._node(place, name, keys)
        for group, name in self._groups.made:
            if name not in self._names:
                self._node(("groups", group), name, {})
        for number, (place, link) in enumerate(links):
            self._link(place, number, link)
        for name, said in probes(self._network, data.get("validate"), self._names):
            self._leave(("validate", name) if name else ("validate",), said)
        if not self._names:
            self._refuse((), "has no nodes", "name a topology of netlab")
        if self._problems:
            raise TopologyError(self._problems)
        for prefix in sorted(self._prefixes):
            self._leave(("prefix", prefix), f"prefix.{prefix}: no link has it")
        self._ways_out()
        self._routes()
        self._network.left.sort()
        return self._network

    def _with_pools(self) -> None:
        """Takes the file's address pools over if one of them has IPv6; else the plan gives links without a
        prefix their subnets.
        """
        if not has_ipv6(self._data):
            return
        try:
            self._pools = Pools(self._data)
        except ValueError as error:
            remedy = "write for example lan: {ipv4: 172.16.0.0/16, ipv6: 2001:db8::/48, prefix: 24}"
            self._refuse(("addressing",), f"has no subnets ({error})", remedy)
        for name, pool in mapping(self._data["addressing"]).items():
            for key in sorted(mapping(pool).keys() - KEYS) if name in DEFAULTS else [""]:
                said = f"addressing.{name}{f'.{key}' if key else ''}: no counterpart"
                self._leave(("addressing", name), said)

    def _refuse(self, path: Place, rule: str, remedy: str, value: str = "") -> None:
        self._problems.append(self._document.problem(self._place(path), value, rule, remedy))

    def _place(self, path: Place) -> Place:
        """Returns the path under which the document stores a key's line: `path`, or the first key whose
        dotted form begins with it; `path` if there is none.
        """
        if path in self._document.lines:
            return path
        wanted = ".".join(map(str, path))
        return next((one for one in self._document.lines if ".".join(map(str, one)).startswith(wanted)), path)

    def _leave(self, path: Place, said: str) -> None:
        line = self._document.problem(self._place(path), "", "", "").line
        self._network.left.append(f"line {line}: {said}")

    def _origin(self, path: Place) -> Origin:
        return Origin(self._document.file, self._document.problem(self._place(path), "", "", "").line)

    def _with_groups(self, path: Place, theirs: str, own: dict[str, Any]) -> dict[str, Any]:
        """Returns the node's keys merged, at every level, over those of its groups; joins the lists of
        modules. Groups that netlab fills itself (by device and AS number) come below. Reports unknown keys of
        groups as left out.
        """
        given, unknown = self._groups.data_of(theirs, OF_GROUP.__contains__)
        for group, key in unknown:
            self._leave(("groups", group), f"group {group}: {key}: no counterpart")
        modules = [*words(own.get("module")), *words(given.get("module"))]
        keys = merged(given, own)
        if "module" in own or "module" in given:
            keys["module"] = list(dict.fromkeys(modules))
        device = str(keys.get("device") or mapping(self._data.get("defaults")).get("device") or "")
        keys = merged(self._groups.extra(device, NODE.__contains__), keys)
        number = self._as_number(theirs, keys)
        return merged(self._groups.extra(f"as{number}", NODE.__contains__), keys)

    def _node(self, path: Place, theirs: str, own: dict[str, Any]) -> None:
        keys = self._with_groups(path, theirs, own)
        device = str(keys.get("device") or mapping(self._data.get("defaults")).get("device") or "")
        name = self._names[theirs] = name_of(theirs, set(self._names.values()))
        if name != theirs:
            self._network.changed.append(f"node {theirs} is {name} here")
        if keys.get("role") in BRIDGES or device in BRIDGES:
            self._network.lans[name] = Lan(name, origin=self._origin(path))
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
        machine = self._network.machines[name] = Machine(name, origin=self._origin(path))
        self._mtus[theirs] = keys.get("mtu")
        if keys.get("role") == "host" or (device in HOSTS and keys.get("role") not in FORWARDING):
            self._hosts.add(name)
        else:
            machine.forward = True
        if name in self._hosts or device in HOSTS:
            for module in words(keys.get("module")):
                self._leave(
                    (*path, "module"), f"{theirs}: the module {module}: the node is no router of ours"
                )
            return
        self._protocols(path, theirs, keys, machine)

    def _protocols(self, path: Place, theirs: str, keys: dict[str, Any], machine: Machine) -> None:
        modules = words(keys["module"] if "module" in keys else self._data.get("module"))
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
            if (given := keys.get(module)) is not None and not isinstance(given, dict):
                self._leave(
                    (*path, module), f"{theirs}: {module}: {given!s:.40}: its modules are as `module` says"
                )
            for key in sorted(mapping(keys.get(module)).keys() - {"as"}):
                self._leave((*path, module), f"{theirs}: {module}.{key}: the kind's own setting stands")

    def _as_number(self, theirs: str, keys: dict[str, Any]) -> int | None:
        everywhere = {
            **mapping(mapping(self._data.get("defaults")).get("bgp")),
            **mapping(self._data.get("bgp")),
        }
        for number, members in mapping(everywhere.get("as_list")).items():
            if theirs in (mapping(members).get("members") or []):
                return int(number)
        found = mapping(keys.get("bgp")).get("as", everywhere.get("as"))
        return int(found) if isinstance(found, int | str) and str(found).isdecimal() else None

    def _link(self, path: Place, number: int, link: Any) -> None:
        keys: dict[str, Any] = nested(link) if isinstance(link, dict) else {"interfaces": ends_of(link)}
        kind = keys.get("type", "lan")
        if kind not in LINKS:
            remedy = f"take it out; types that can be: {', '.join(LINKS)}"
            self._refuse((*path, "type"), "a link of this type cannot be taken over", remedy, str(kind)[:60])
            return
        listed = [
            mapping(one) if isinstance(one, dict) else {"node": one} for one in keys.get("interfaces") or []
        ]
        members = [(str(one.get("node")), one) for one in listed]
        members += [(key, mapping(value)) for key, value in keys.items() if key in self._names]
        for key, value in keys.items():
            if key in self._names and value is not None and not isinstance(value, dict):
                remedy = "write its keys, or nothing"
                self._refuse((*path, key), "an interface is no mapping", remedy, str(value)[:60])
        cost = mapping(keys.get("ospf")).get("cost")
        for key in sorted(keys.keys() - LINK - self._names.keys()):
            if key in ("vlan", "vrf", "lag", "vxlan"):
                self._refuse(path, f"{key} cannot be taken over", "take it out of the link", key)
                continue
            known = {"cost"} if key == "ospf" and isinstance(keys[key], dict) else set()
            for inner in sorted(mapping(keys[key]).keys() - known if known else {""}):
                off = ": false" if keys[key] is False else ""
                self._leave((*path, key), f"{key}{f'.{inner}' if inner else ''}{off} of a link")
        wrong = [name for name, _ in members if name not in self._names]
        if wrong or not members:
            remedy = "name them as `nodes` does"
            self._refuse(path, "does not join nodes of the file", remedy, ", ".join(wrong)[:60])
        elif not self._problems:
            self._joined(path, number, keys, members, cost)

    def _joined(
        self,
        path: Place,
        number: int,
        keys: dict[str, Any],
        members: list[tuple[str, dict[str, Any]]],
        cost: Any,
    ) -> None:
        ends: list[End] = [
            (self._names[name], f"l{number}-{place}") for place, (name, _) in enumerate(members)
        ]
        for key in sorted({key for _, own in members for key in own} - INTERFACE):
            self._leave(path, f"{key} of an interface")
        places = [at.Place(name, self._numbers[name], own) for name, own in members]
        try:
            self._addresses(path, keys, places, ends)
        except ValueError as error:
            prefix = str(keys.get("prefix", ""))[:60]
            rule, remedy = f"has no subnet or address ({error})", "write for example prefix: 10.0.0.0/24"
            self._refuse(path, rule, remedy, prefix)
            return
        default = mapping(mapping(self._data.get("defaults")).get("interfaces")).get("mtu")
        try:
            mtu = at.sizes(places, keys.get("mtu"), self._mtus, default, partial(self._leave, path))
        except ValueError as error:
            self._refuse((*path, "mtu"), f"is no size of a frame ({error})", "write mtu: 1500")
            return
        shaped = [self._quantities(path, at.shaping(keys.get("tc"), place)) for place in places]
        down = [bool(keys.get("shutdown") or place.own.get("shutdown")) for place in places]
        origin = self._origin(path)
        if len(ends) == 2:
            both = {"both": shaped[0]} if shaped[0] == shaped[1] else dict(zip(SIDES, shaped, strict=True))
            sides = {side: what for side, what in both.items() if what}
            wire = Wire((ends[0], ends[1]), mtu, sides, any(down), origin=origin)
            if isinstance(cost, int) and not {node for node, _ in ends} & self._network.lans.keys():
                wire.cost = cost
            elif cost is not None:
                self._leave(path, "ospf.cost of a link with a bridge")
            self._network.join(wire)
            return
        if cost is not None:
            self._leave(path, "ospf.cost of a link of several nodes")
        name = name_of(
            str(keys.get("bridge") or f"lan-{number + 1}"), {*self._names.values(), *self._network.lans}
        )
        self._network.lans[name] = Lan(name, mtu=mtu, origin=origin)
        for end, what, is_down in zip(ends, shaped, down, strict=True):
            # netlab's netem applies to the packets that a node sends: one delay from node to node, not two.
            self._network.join(
                Wire((end, (name, "")), None, {"forward": what} if what else {}, is_down, origin=origin)
            )

    def _addresses(self, path: Place, keys: dict[str, Any], places: list[at.Place], ends: list[End]) -> None:
        """Gives the ends the addresses that netlab gives; the plan gives them where the link has no prefix.
        Raises ValueError for a wrong subnet or address.
        """
        prefix = keys.get("prefix")
        # a prefix may be stated by its name
        self._prefixes.discard(str(prefix))
        prefix = mapping(self._data.get("prefix")).get(str(prefix), prefix)
        if isinstance(prefix, dict) and not {"ipv4", "ipv6", "pool"} & prefix.keys():
            self._leave(path, f"prefix without a subnet ({prefix!s:.60})")
        kind = at.is_p2p(keys.get("type"), [node for node, _ in ends], self._hosts)
        if prefix is None and self._pools is not None:
            prefix = self._pools.prefix(kind)
        found = at.addresses(prefix, places, kind, partial(self._leave, path))
        for (node, port), addresses in zip(ends, found, strict=True):
            if node in self._network.machines and addresses:
                self._network.machines[node].addresses[port] = addresses

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

    def _routes(self) -> None:
        """Makes the network one whose file gives all routes, as netlab adds none but those of protocols and
        of hosts; with stand-ins the plan's routes stay. Reports routers without a routing protocol.
        """
        routers = [one for one in self._network.machines.values() if one.forward]
        silent = [one.name for one in routers if not one.software]
        if self._stand_ins and len(silent) == len(routers):
            self._network.changed.append(
                "no router has a routing protocol in the file: routes are the plan's"
            )
            return
        self._network.keeps_routes = True
        if silent and len(routers) > 1:
            said = "no routing protocol in the file: no routes but those to its own subnets"
            self._network.changed.append(f"{', '.join(silent):.100}: {said}")

    def _ways_out(self) -> None:
        """Gives each host a default route to the first node that forwards on one of its networks, as netlab
        does.
        """
        if self._stand_ins and not any(machine.software for machine in self._network.machines.values()):
            return
        groups = [[node for node, _ in lan.members] for lan in self._network.lans.values()]
        groups += [[node for node, _ in wire.ends] for wire in self._network.wires]
        for host in sorted(self._hosts):
            beside = [node for group in groups if host in group for node in group if node != host]
            if router := next((node for node in beside if self._network.machines[node].forward), None):
                self._network.machines[host].routes.append(Route("default", router))
