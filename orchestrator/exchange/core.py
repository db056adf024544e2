"""Imports scenarios of CORE: devices, networks, links with their options, and the routing protocols that all
routers share.

A wireless network becomes a LAN on which all nodes receive all frames; EMANE's models are left out.
"""

from __future__ import annotations

import ipaddress
import math
from pathlib import Path
from typing import Any

from ..language.markup import Element, elements
from ..language.problem import Problem, TopologyError
from .daemons import DAEMONS
from .files import bounded
from .network import End, Lan, Machine, Network, Origin, Route, Wire, insist_few, name_of

TOOL = "CORE"
REMEDY = "name a scenario that CORE 6 or newer has saved as XML"
SWITCHES, RADIO, OUTSIDE = ("SWITCH", "HUB"), ("WIRELESS_LAN", "WIRELESS"), ("RJ45",)
FORWARDING = {"IPForward", "zebra", "BGP", "RIP", "RIPNG", "Babel"}
# Services of a device without any, by its type (services/manager.py).
_SPOKEN = next((word for word in DAEMONS.protocols if word.endswith("v2")), "")
_NEXT = f"{_SPOKEN[:-1]}3"
DEFAULTS = {
    "router": {"zebra", _SPOKEN, _NEXT, "IPForward"}, "mdr": {"zebra", f"{_NEXT}MDR", "IPForward"},
    "PC": {"DefaultRoute"}, "host": {"DefaultRoute", "SSH"},
}  # fmt: skip
QUIET = {
    "IPForward",
    "DefaultRoute",
    "StaticRoute",
    "DefaultMulticastRoute",
    "zebra",
}  # services that the import itself replaces, or that have no effect
# Services that give a device routes (services/defaults), beside those of DAEMONS.
ROUTING = {
    "OSPFv3", "OSPFv3MDR", "BGP", "RIP", "RIPNG", "Babel", "Xpimd", "pimd", "OLSR", "OLSRv2", "OLSRORG",
    "NHDP", "SMF", "DHCPClient",
}  # fmt: skip
# CORE's name of a link option -> the topology's key and CORE's unit.
OPTIONS = {
    "delay": ("delay", "us"), "jitter": ("jitter", "us"), "bandwidth": ("rate", "bit/s"),
    "buffer": ("limit", ""), "loss": ("loss", "%"), "per": ("loss", "%"), "dup": ("duplicate", "%"),
}  # fmt: skip
NODES = (("node1", "node_one"), ("node2", "node_two"))  # CORE's present and former names of these attributes
IFACES = (("iface1", "interface_one"), ("iface2", "interface_two"))
# Sections that are imported, and sections without effect on the network: drawing, geographic position,
# presets of new devices.
READ = ("networks", "devices", "links", "session_metadata", "session_origin", "default_services")
INERT = {"preservedir", "enablerj45", "enablesdt", "sdturl", "link_enabled", "link_timeout"}
UNKNOWN = ("mer", "burst", "mburst")
# Attributes that are read or reported elsewhere, and those of drawing.
_KNOWN = {
    "network": {"id", "name", "type", "server", "icon", "canvas"},
    "device": {"id", "name", "type", "class", "image", "compose", "server", "icon", "canvas"},
    "iface": {"id", "name", "mac", "ip4", "ip4_mask", "ip6", "ip6_mask"},
    "options": {*OPTIONS, *UNKNOWN, "unidirectional"},
    "link": {"node1", "node2", "node_one", "node_two"},
}


def read(path: Path) -> Network:
    """Returns the network of a scenario file (XML). Raises TopologyError with the lines of all parts that
    cannot be imported.
    """
    return _Reader(path, elements(str(path), bounded(path), REMEDY)).network()


class _Reader:
    def __init__(self, path: Path, root: Element) -> None:
        self._file, self._root = str(path), root
        self._problems: list[Problem] = []
        self._names: dict[str, str] = {}  # CORE's id -> name of the node
        self._outside: set[str] = set()
        self._network = Network(name_of(path.stem, set()), f"{TOOL}, {path.name}", source=str(path))
        self._services: dict[str, set[str]] = {}
        self._ports: dict[
            str, list[tuple[int, str]]
        ] = {}  # device -> the numbers and names of its interfaces

    def network(self) -> Network:
        if self._root.tag != "scenario":
            self._refuse(self._root, "is no scenario", REMEDY, f"<{self._root.tag}>")
        paths = (("networks", "network"), ("devices", "device"), ("links", "link"))
        insist_few(self._file, sum(len(list(self._root.all(*path))) for path in paths))
        for element in self._root.all("networks", "network"):
            self._lan(element)
        for element in self._root.all("devices", "device"):
            self._device(element)
        self._protocols()
        joined: dict[frozenset[str], Wire] = {}
        for element in self._root.all("links", "link"):
            self._link(element, joined)
        for wire in joined.values():
            self._network.join(wire)
        self._routes()
        for element in self._root.children:
            for inner in element.children if element.tag not in READ else ():
                self._section(inner)
        if not self._network.machines and not self._problems:
            self._refuse(self._root, "has no devices", REMEDY)
        if self._problems:
            raise TopologyError(self._problems)
        return self._network

    def _section(self, element: Element) -> None:
        """Reports an element of a section that is not imported, with the options in it that have a value.
        Silent for an option that is not set or has no effect on the network.
        """
        set_options = [
            one.attributes for one in (element, *element.all("configuration")) if "value" in one.attributes
        ]
        options = [
            f"{one.get('name')}={one['value']}"
            for one in set_options
            if one["value"] not in ("", "0") and one.get("name") not in INERT
        ]
        if element.tag != "configuration":
            options = [" ".join([element.tag, *element.attributes.values()]), *options]
        if options:
            self._leave(element, f"{' '.join(', '.join(options).split())[:160]}: no counterpart")

    def _refuse(self, element: Element, rule: str, remedy: str, value: str = "") -> None:
        self._problems.append(Problem(self._file, element.line, "", value, rule, remedy))

    def _leave(self, element: Element, said: str) -> None:
        self._network.left.append(f"line {element.line}: {said}")

    def _unknown(self, kind: str, element: Element) -> None:
        for key, value in sorted(element.attributes.items()):
            if key not in _KNOWN[kind] and value not in ("", "0", "0.0"):
                self._leave(element, f"{key} = {value:.60} of a {element.tag}: no counterpart")

    def _named(self, element: Element) -> tuple[str, str]:
        """Returns (name in the file, valid and unused node name) of an element, and stores the node name by
        the element's id. Reports a name that it changes.
        """
        if element.attributes.get("id", "") in self._names:
            self._refuse(element, "has an id that another has", REMEDY, element.attributes.get("id", ""))
        theirs = element.attributes.get("name") or f"n{element.attributes.get('id', '')}"
        name = self._names[element.attributes.get("id", "")] = name_of(theirs, set(self._names.values()))
        if name != theirs:
            self._network.changed.append(f"node {theirs} is {name} here")
        return theirs, name

    def _lan(self, element: Element) -> None:
        kind = element.attributes.get("type", "")
        if kind in OUTSIDE:
            self._outside.add(element.attributes.get("id", ""))
            self._leave(element, f"{element.attributes.get('name')}: {kind}, which is outside of the lab")
            return
        theirs, name = self._named(element)
        self._unknown("network", element)
        for option in element.all("wireless", "configuration"):
            given = " = ".join(option.attributes.get(key, "") for key in ("name", "value"))
            self._leave(option, f"{theirs}: {given[:80]}: no counterpart")
        if server := element.attributes.get("server"):
            self._leave(element, f"{theirs}: server {server[:60]}: no counterpart")
        if kind in RADIO:
            said = "its ranges and movements do not carry over: all its nodes receive each other's frames"
            self._network.changed.append(f"line {element.line}: {theirs} is a wired network: {said}")
        elif kind not in SWITCHES:
            remedy = f"kinds that can be: {', '.join((*SWITCHES, *RADIO))}"
            self._refuse(element, "is a kind of network that cannot be taken over", remedy, kind)
        self._network.lans[name] = Lan(name, origin=Origin(self._file, element.line))

    def _device(self, element: Element) -> None:
        theirs, name = self._named(element)
        self._unknown("device", element)
        services = {
            service.attributes.get("name", "").removeprefix("FRR")
            for section in ("services", "configservices")
            for service in element.all(section, "service")
        }
        if not services and (services := DEFAULTS.get(element.attributes.get("type", ""), set())):
            said = f"{theirs} names no service: it has those of its type, {', '.join(sorted(services))}"
            self._network.changed.append(f"line {element.line}: {said}")
        self._network.machines[name] = Machine(
            name, forward=bool(services & FORWARDING), origin=Origin(self._file, element.line)
        )
        self._services[name] = services
        for service in sorted(services - QUIET - DAEMONS.protocols.keys()):
            self._leave(element, f"{theirs}: the service {service}")
        if image := element.attributes.get("image"):
            self._leave(element, f"{theirs}: image {image}: a node has the programs of this machine")
        for key in ("compose", "compose_name", "server"):
            if value := element.attributes.get(key):
                self._leave(element, f"{theirs}: {key} {value[:60]}: no counterpart")

    def _protocols(self) -> None:
        """Configures the routing protocols that all routers (machines that forward) have in common. Without a
        common protocol it configures none, so that the plan makes the routes, and lists each protocol as left
        out.
        """
        routers = [machine for machine in self._network.machines.values() if machine.forward]
        spoken = {
            machine.name: self._services[machine.name] & DAEMONS.protocols.keys() for machine in routers
        }
        common = set.intersection(*spoken.values()) if spoken else set()
        if common:
            for machine in routers:
                wanted: dict[str, Any] = {DAEMONS.protocols[word]: {} for word in sorted(common)}
                machine.software = {"router": DAEMONS.software(wanted)}
            return
        for word in sorted(set.union(set(), *spoken.values())):
            without = next(name for name, words in spoken.items() if word not in words)
            said = f"{word}: {without} does not speak it, and a lab has either its routes or the plan's"
            self._network.left.append(said)

    def _routes(self) -> None:
        """Gives each device of the service DefaultRoute its default route, as CORE does: by the first address
        of the subnet of its first interface; reports one to an address that no device has. The network has
        these routes and no others, unless a device has a routing protocol that is left out.
        """
        has = {
            name: services & (ROUTING | DAEMONS.protocols.keys()) for name, services in self._services.items()
        }
        machines = self._network.machines
        self._network.has_routes = not any(has.values())
        if not self._network.has_routes and not any(one.software for one in machines.values()):
            said = sorted(set.union(*has.values()))
            self._network.changed.append(f"routes are the plan's, in the place of those of {', '.join(said)}")
            return
        known = {
            one.partition("/")[0] for m in machines.values() for some in m.addresses.values() for one in some
        }
        for name, services in self._services.items():
            first = next(iter(sorted(self._ports.get(name, []))), (0, ""))[1]
            for text in machines[name].addresses.get(first, []) if "DefaultRoute" in services else []:
                own = ipaddress.ip_interface(text)
                via = str(own.network[1]) if own.network.num_addresses > 1 else ""
                if via in known and via != str(own.ip):
                    machines[name].routes.append(Route("default", via))
                elif own.version == 4 and via:
                    self._network.changed.append(
                        f"{name}: its default route by {via} leads nowhere, there too"
                    )

    def _link(self, element: Element, joined: dict[frozenset[str], Wire]) -> None:
        ids = [element.attributes.get(key) or element.attributes.get(old) for key, old in NODES]
        if any(one in self._outside for one in ids):
            self._leave(element, "a link to what is outside of the lab")
            return
        if any(one not in self._names for one in ids):
            rule = "does not join two nodes of the file"
            self._refuse(element, rule, REMEDY, " and ".join(str(one) for one in ids))
            return
        ends = [self._end(element, str(one), side) for one, side in zip(ids, IFACES, strict=True)]
        self._unknown("link", element)
        options = element.first("options")
        quantities = self._quantities(options) if options else {}
        one_way = options is not None and options.attributes.get("unidirectional") == "1"
        origin = Origin(self._file, element.line)
        key = frozenset(f"{node}:{port}" for node, port in ends)
        wire = joined.setdefault(key, Wire((ends[0], ends[1]), origin=origin))
        side = "forward" if wire.ends[0] == ends[0] else "reverse"
        if quantities:
            wire.impairments[side if one_way else "both"] = quantities

    def _end(self, element: Element, node_id: str, sides: tuple[str, str]) -> End:
        name = self._names[node_id]
        iface = element.first(sides[0]) or element.first(sides[1])
        given = iface.attributes if iface else {}
        if iface is not None:
            self._unknown("iface", iface)
        port = given.get("name") or f"eth{given.get('id', '')}"
        if iface is not None and name in self._network.machines:
            addresses = self._network.machines[name].addresses.setdefault(port, [])
            number = given.get("id", "")
            self._ports.setdefault(name, []).append((int(number) if number.isdecimal() else 0, port))
            if mac := given.get("mac"):
                self._leave(iface, f"{name}: the MAC {mac} is the plan's here")
            for family in ("ip4", "ip6"):
                if address := given.get(family):
                    self._address(iface, f"{address}/{given.get(f'{family}_mask', '')}", addresses)
        return name, port

    def _address(self, element: Element, text: str, addresses: list[str]) -> None:
        try:
            given = str(ipaddress.ip_interface(text))
        except ValueError:
            self._refuse(element, "is no address", "write for example 10.0.0.1 with a mask of 24", text)
            return
        if given not in addresses:
            addresses.append(given)

    def _quantities(self, options: Element) -> dict[str, Any]:
        self._unknown("options", options)
        found: dict[str, Any] = {}
        for key, (ours, unit) in OPTIONS.items():
            text = options.attributes.get(key, "0")
            try:
                value = float(text)
                if not 0 <= value < math.inf:
                    raise ValueError
            except ValueError:
                self._refuse(options, "is no number from 0 on", "mend the link's options", f"{key}={text}")
                continue
            if value > 0:
                found[ours] = (
                    f"{value:g} {unit}" if unit not in ("", "bit/s") else f"{value:.0f} {unit}".strip()
                )
        if "limit" in found:
            found["limit"] = int(found["limit"])
        for key in UNKNOWN:
            if options.attributes.get(key, "0") not in ("0", "0.0", ""):
                self._leave(options, f"{key} of a link: no counterpart")
        return found
