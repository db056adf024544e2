"""Imports projects of GNS3: virtual PCs, containers, switches and hubs, and the links between them.

Refuses machines that run a vendor's system, unless `stand_ins` lets plain routers replace them.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import Document, read_document
from ..software.registry import KINDS
from .commands import interfaces_file, virtual_pc
from .files import bounded, readable, script
from .network import End, Lan, Machine, Network, Origin, Wire, insist_few, name_of
from .startup import Startup

TOOL = "GNS3"
PCS, CONTAINERS = ("vpcs",), ("docker",)
SWITCHES, OUTSIDE = ("ethernet_switch", "ethernet_hub"), ("cloud", "nat")
OLDEST, NEWEST = 5, 10  # oldest and newest revision of the project file: GNS3 2.0 to 3.0
_ID = re.compile(r"[\w-]+")
# GNS3's name of a packet filter -> for each of its numbers, the topology's key and GNS3's unit.
FILTERS = {
    "delay": (("delay", "ms"), ("jitter", "ms")),
    "packet_loss": (("loss", "%"),),
    "corrupt": (("corrupt", "%"),),
}
Place = tuple[str | int, ...]


def read(path: Path, stand_ins: bool = False) -> Network:
    """Returns the network of a project file (*.gns3). Raises TopologyError with the lines of all parts that
    cannot be imported. With `stand_ins`, plain routers replace machines that run a vendor's system.
    """
    return _Reader(path, read_document(str(path), bounded(path)), stand_ins).network()


# Keys that are read, and keys that do not describe the network: drawing, windows, places on the server.
_WINDOWS = {"console", "console_type", "console_auto_start", "console_host", "aux", "aux_type"}
_DRAWN = {"x", "y", "z", "width", "height", "label", "symbol", "locked", "tags"}
_TOP = {
    "name", "revision", "topology", "type", "version", "project_id", "auto_close", "auto_open", "auto_start",
    "grid_size", "drawing_grid_size", "scene_height", "scene_width", "show_grid", "show_interface_labels",
    "show_layers", "snap_to_grid", "supplier", "zoom", "created_at", "updated_at",
}  # fmt: skip
_PARTS = {"nodes", "links", "computes", "drawings"}
_NODE = _WINDOWS | _DRAWN | {
    "name", "node_type", "node_id", "properties", "compute_id", "first_port_name", "port_name_format",
    "port_segment_size", "template_id", "template", "ports",
}  # fmt: skip
_LINK = {"nodes", "suspend", "filters", "link_id", "link_style", "capturing", "capture_file_name"}
_CONTAINER = _WINDOWS | {
    "image", "start_command", "cpus", "memory", "environment", "extra_hosts", "extra_volumes", "mac_address",
    "custom_adapters", "adapters", "console_http_path", "console_http_port", "console_resolution",
    "container_id", "usage",
}  # fmt: skip


class _Reader:
    def __init__(self, path: Path, document: Document, stand_ins: bool) -> None:
        self._files, self._document = path.parent / "project-files", document
        self._stand_ins = stand_ins
        self._problems: list[Problem] = []
        self._names: dict[str, str] = {}  # GNS3's id -> name of the node
        self._outside: set[str] = set()
        self._lans: dict[tuple[str, int], str] = {}  # (switch, port) -> LAN
        data = _mapping(document.data)
        self._network = Network(
            name_of(str(data.get("name") or path.stem), set()),
            f"{TOOL}, {path.name}",
            source=str(path),
            has_routes=not stand_ins,
        )

    def network(self) -> Network:
        data = _mapping(readable(self._document.data))
        self._unknown((), data, _TOP)
        self._unknown(("topology",), _mapping(data.get("topology")), _PARTS)
        revision = data.get("revision")
        if not isinstance(revision, int) or not OLDEST <= revision <= NEWEST:
            self._refuse(
                ("revision",), "is no revision that is known", "save it with GNS3 2 or 3", str(revision)
            )
            raise TopologyError(self._problems)
        topology = _mapping(data.get("topology"))
        insist_few(self._document.file, sum(len(_list(topology.get(key))) for key in ("nodes", "links")))
        for number, node in enumerate(_list(topology.get("nodes"))):
            self._node(("topology", "nodes", number), node)
        for number, link in enumerate(_list(topology.get("links"))):
            self._link(("topology", "links", number), link)
        if not self._network.machines and not self._problems:
            self._refuse(("topology",), "has no machines", "name a project with virtual PCs or containers")
        if self._problems:
            raise TopologyError(self._problems)
        return self._network

    def _refuse(self, path: Place, rule: str, remedy: str, value: str = "") -> None:
        self._problems.append(self._document.problem(path, value, rule, remedy))

    def _leave(self, path: Place, said: str) -> None:
        line = self._document.problem(path, "", "", "").line
        self._network.left.append(f"line {line}: {said}")

    def _unknown(self, path: Place, keys: dict[str, Any], known: set[str], of: str = "") -> None:
        for key in sorted(keys.keys() - known):
            if keys[key] not in (None, "", [], {}, False):
                self._leave(
                    (*path, key), f"{of}{key} ({' '.join(str(keys[key]).split()):.60}): no counterpart"
                )

    def _origin(self, path: Place) -> Origin:
        return Origin(self._document.file, self._document.problem(path, "", "", "").line)

    def _node(self, path: Place, node: Any) -> None:
        keys = _mapping(node)
        theirs, kind, ident = (str(keys.get(key, "")) for key in ("name", "node_type", "node_id"))
        properties = _mapping(keys.get("properties"))
        self._unknown(path, keys, _NODE, f"{theirs}: ")
        if kind in OUTSIDE:
            self._outside.add(ident)
            self._leave(path, f"{theirs}: {kind}, which is outside of the lab")
            return
        if kind in SWITCHES:
            self._switch(path, theirs, ident, properties)
            return
        if kind not in (*PCS, *CONTAINERS) and not (self._stand_ins and kind):
            remedy = f"kinds that can be: {', '.join((*PCS, *CONTAINERS, *SWITCHES))}; or use --stand-ins"
            self._refuse((*path, "node_type"), f"{theirs} cannot be taken over", remedy, kind)
            return
        if not _ID.fullmatch(ident):
            self._refuse((*path, "node_id"), "is no id", "save the project anew with GNS3", ident)
            return
        name = self._names[ident] = self._named(theirs)
        machine = self._network.machines[name] = Machine(name, origin=self._origin(path))
        if kind in PCS:
            text = _text(self._files / "vpcs" / ident / "startup.vpc") or str(
                properties.get("startup_script") or ""
            )
            for line in virtual_pc(machine, text):
                self._leave(path, f"{theirs}: `{line}` is not done")
        elif kind not in CONTAINERS:
            machine.forward = True
            self._leave(path, f"{theirs}: its system ({kind}): a plain router stands for it")
        else:
            self._container(path, theirs, machine, ident, properties)

    def _named(self, theirs: str) -> str:
        name = name_of(theirs, {*self._network.machines, *self._network.lans})
        if name != theirs:
            self._network.changed.append(f"node {theirs} is {name} here")
        return name

    def _whole(self, path: Place, value: Any, default: int) -> int:
        if value is not None and not isinstance(value, int):
            self._refuse(path, "is no whole number", "save the project anew with GNS3", str(value))
        return value if isinstance(value, int) else default

    def _switch(self, path: Place, theirs: str, ident: str, properties: dict[str, Any]) -> None:
        """Makes a segment of a switch; one for each VLAN if its ports are in several. Refuses ports that
        carry several VLANs (trunks). A port that the file does not list is on the segment of the lowest VLAN.
        """
        ports = [p for p in _list(properties.get("ports_mapping")) if isinstance(p, dict)]
        vlans = {
            self._whole(path, p.get("port_number"), 0): self._whole(path, p.get("vlan"), 1) for p in ports
        }
        if any(str(p.get("type", "access")) != "access" for p in ports):
            remedy = "make it a port of one VLAN"
            self._refuse(path, f"{theirs} has a port of several VLANs, which cannot be taken over", remedy)
        lans: dict[int, str] = {}
        for vlan in sorted(set(vlans.values())) or [1]:
            name = lans[vlan] = self._named(theirs)
            self._network.lans[name] = Lan(name, origin=self._origin(path))
            if len(set(vlans.values())) > 1:
                self._network.changed.append(f"VLAN {vlan} of {theirs} is the segment {name} here")
        self._names[ident] = next(iter(lans.values()))
        self._lans |= {(ident, port): lans[vlan] for port, vlan in vlans.items()}

    def _container(
        self, path: Place, theirs: str, machine: Machine, ident: str, properties: dict[str, Any]
    ) -> None:
        self._unknown((*path, "properties"), properties, _CONTAINER, f"{theirs}: ")
        image, own = str(properties.get("image") or ""), self._files / "docker" / ident
        kind = next((k for k in KINDS.values() if k.foreign and k.foreign.recognises(image)), None)
        if kind is not None and kind.foreign is not None:
            machine.config = _text(own / kind.foreign.file.removeprefix("/"))
            machine.forward = kind.foreign.forwards
            machine.kind = kind.name if machine.config else None
            machine.addresses = {port: list(a) for port, a in kind.foreign.addresses(machine.config).items()}
            if not machine.config:
                self._leave(path, f"{theirs}: its program has no configuration: a router without protocols")
        elif image:
            self._leave(path, f"{theirs}: image {image}: a node has the programs of this machine")
        for line in interfaces_file(machine, _text(own / "etc/network/interfaces")):
            self._leave(path, f"{theirs}: `{line}` of its interfaces is not done")
        self._command(path, theirs, machine, str(properties.get("start_command") or ""))
        for key, ours, unit in (("cpus", "cpu_limit", "cores"), ("memory", "memory_limit", "MiB")):
            value = properties.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and value:
                machine.keys[ours] = f"{value} {unit}"
            elif value:
                self._leave(path, f"{theirs}: {key} ({str(value)[:60]}), which is no number")
        for key in ("environment", "extra_hosts", "extra_volumes", "mac_address", "custom_adapters"):
            if value := properties.get(key):
                self._leave(path, f"{theirs}: {key} ({' '.join(str(value).split())[:60]})")

    def _command(self, path: Place, theirs: str, machine: Machine, command: str) -> None:
        """Applies the effects of the container's start command; splits its words as a shell does. Ignores a
        command that only starts a shell; refuses one with open quotes; reports parts without a counterpart.
        """
        try:
            words = shlex.split(command)
        except ValueError as error:
            self._refuse(path, f"has a start command that is none ({error})", "mend it", command[:60])
            return
        if words and words not in (["sh"], ["bash"], ["/bin/sh"], ["/bin/bash"]):
            startup = Startup(machine, theirs, lambda _line: f"line {self._origin(path).line}")
            startup.command(words, self._origin(path).line)
            self._network.left += [f"{line} ({theirs})" for line in startup.left]
            for line, value, rule, remedy in startup.problems:
                self._problems.append(Problem(self._document.file, line, "", value, rule, remedy))

    def _link(self, path: Place, link: Any) -> None:
        keys = _mapping(link)
        self._unknown(
            path, keys, _LINK | ({"link_type"} if keys.get("link_type") == "ethernet" else set()), "a link's "
        )
        nodes = [_mapping(node) for node in _list(keys.get("nodes"))]
        ids = [str(node.get("node_id", "")) for node in nodes]
        if keys.get("suspend") or any(one in self._outside for one in ids):
            self._leave(
                path, "a link that is suspended" if keys.get("suspend") else "a link to outside of the lab"
            )
            return
        if self._problems and any(one not in self._names for one in ids):
            return  # the link belongs to a refused node
        if len(nodes) != 2 or any(one not in self._names for one in ids):
            self._refuse(path, "does not join two nodes of the file", "save the project anew with GNS3")
            return
        ends = tuple(self._end(path, node) for node in nodes)
        both = self._quantities(path, _mapping(keys.get("filters")))
        sides = {"both": both} if both else {}
        self._network.join(Wire((ends[0], ends[1]), impairments=sides, origin=self._origin(path)))

    def _end(self, path: Place, node: dict[str, Any]) -> End:
        ident, port = str(node["node_id"]), self._whole(path, node.get("port_number"), 0)
        name = self._lans.get((ident, port), self._names[ident])
        adapter = self._whole(path, node.get("adapter_number"), 0)
        return name, f"eth{adapter}" if not port else f"eth{adapter}/{port}"

    def _quantities(self, path: Place, filters: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for word, values in filters.items():
            if not isinstance(values, list) or len(values) > len(FILTERS.get(word, values)):
                rule = f"the packet filter {word} has values that are not known"
                self._refuse(path, rule, "save the project anew with GNS3", str(values)[:60])
                continue
            if word not in FILTERS:
                self._leave(
                    path, f"the packet filter {word} {' '.join(map(str, _list(values)))[:60]}".rstrip()
                )
                continue
            for (ours, unit), value in zip(FILTERS[word], _list(values), strict=False):
                if value:
                    found[ours] = f"{value} {unit}"
        return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(file: Path) -> str:
    """Returns the text of a file of the project; "" if it is absent."""
    return script(file) if file.is_file() else ""
