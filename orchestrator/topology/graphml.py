"""Converts a GraphML file (as in the Topology Zoo) into a topology of routers, with a link for each edge.
Nodes without an edge and edges from a node to itself are left out.
The delay of a link is that of light in fibre between the positions of its ends, or 1 ms if one is unknown.
Its rate is the edge's `LinkSpeedRaw`, if the file has one.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

from ..language.problem import Problem, TopologyError
from ..language.scalars import LONGEST_NAME

_SPACE = "{http://graphml.graphdrawing.org/xmlns}"
EARTH_KM = 6371.0
FIBRE_KM_PER_MS = 200.0  # two thirds of the speed of light
# Attributes of edges in the Topology Zoo and of drawings that do not describe how a link behaves.
_ABOUT_EDGES = frozenset((
    "LinkSpeed", "LinkSpeedUnits", "LinkLabel", "LinkNote", "LinkType", "LinkStatus", "id", "key", "label",
    "description", "url", "",
))  # fmt: skip
NO_PLACE_MS = 1.0  # delay of an edge with an end of unknown position


@dataclass
class _Graph:
    names: dict[str, str] = field(default_factory=dict)  # id -> name in the topology
    places: dict[str, tuple[float, float]] = field(default_factory=dict)  # latitude, longitude
    edges: list[tuple[str, str, float]] = field(default_factory=list)  # ids and rate in bit/s, 0: unknown


def topology_text(file: str, content: bytes, name: str, *, hosts: bool = False) -> str:
    """Returns the topology's text; `hosts` adds a node behind each router. Raises TopologyError if the file
    holds no graph.
    """
    graph = _read(file, content)
    lines = [f"name: {name}", f"description: From {file}, {len(graph.names)} routers."]
    if hosts:
        lines.append("segments:")
        lines += [
            f"  at-{n}: {{subnet: 10.{i >> 8}.{i & 255}.0/24}}" for i, n in enumerate(graph.names.values())
        ]
    lines.append("nodes:")
    for router in graph.names.values():
        lines.append(f"  {router}: {{forward: true{f', segment: at-{router}' if hosts else ''}}}")
    if hosts:
        lines += [f"  h-{router}: {{segment: at-{router}}}" for router in graph.names.values()]
    lines.append("links:")
    for number, (a, b, rate) in enumerate(graph.edges, 1):
        ways = [f"delay: {_delay_us(graph, a, b)} us"] + ([f"rate: {rate:.0f} bit/s"] if rate else [])
        ends = f"[{graph.names[a]}, {graph.names[b]}]"
        lines.append(f"  l{number}: {{between: {ends}, both: {{{', '.join(ways)}}}}}")
    return "\n".join(lines) + "\n"


def left_out(file: str, content: bytes) -> list[str]:
    """Returns a line on each part of a GraphML file that the topology does not have: nodes without an edge to
    another one, edges from a node to itself, attributes of edges that are not read, and directions. Raises
    TopologyError if the file holds no graph.
    """
    graph = _read(file, content)
    root = ElementTree.fromstring(content)
    keys = {key.get("id", ""): key.get("attr.name", "") for key in root.iter(f"{_SPACE}key")}
    edges = list(root.iter(f"{_SPACE}edge"))
    ends = [(edge.get("source", ""), edge.get("target", "")) for edge in edges]
    nodes = [node.get("id", "") for node in root.iter(f"{_SPACE}node")]
    found = [f"the node {node} has no edge to another one" for node in nodes if node not in graph.names]
    found += [f"the edge from {a} to itself" for a, b in ends if a == b]
    read = {*_ABOUT_EDGES, "LinkSpeedRaw"}
    unread = sorted({key for edge in edges for key in _values(edge, keys)} - read)
    found += [f"the attribute {key} of edges" for key in unread]
    directed = any(one.get("edgedefault") == "directed" for one in root.iter(f"{_SPACE}graph"))
    twice = sorted({(a, b) for a, b in ends if a < b and (b, a) in ends}) if directed else []
    found += [f"the directions of {a} and {b}: each of their edges is a link both ways" for a, b in twice]
    return found


def _read(file: str, content: bytes) -> _Graph:
    def refuse(rule: str) -> TopologyError:
        return TopologyError([Problem(file, 0, "", "", rule, "name a GraphML file with nodes and edges")])

    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise refuse(f"is not XML ({error})") from None
    except (LookupError, ValueError) as error:
        raise refuse(f"cannot be read ({error})") from None
    keys = {key.get("id", ""): key.get("attr.name", "") for key in root.iter(f"{_SPACE}key")}
    graph = _Graph()
    if next(root.iter(f"{_SPACE}hyperedge"), None) is not None:
        raise refuse("has a hyperedge, which cannot be taken over")
    for node in root.iter(f"{_SPACE}node"):
        _node(graph, node.get("id", ""), _values(node, keys))
    for edge in root.iter(f"{_SPACE}edge"):
        a, b = edge.get("source", ""), edge.get("target", "")
        if a not in graph.names or b not in graph.names:
            raise refuse(f'has an edge from "{a}" to "{b}", and no node of that id')
        if a != b:
            graph.edges.append((a, b, _number(_values(edge, keys).get("LinkSpeedRaw")) or 0.0))
    if not graph.edges:
        raise refuse("has no edge between two nodes")
    joined = {end for a, b, _ in graph.edges for end in (a, b)}
    graph.names = {one: name for one, name in graph.names.items() if one in joined}
    return graph


def _values(element: ElementTree.Element, keys: dict[str, str]) -> dict[str, str]:
    return {keys.get(d.get("key", ""), ""): d.text or "" for d in element.iter(f"{_SPACE}data")}


def _node(graph: _Graph, identity: str, values: dict[str, str]) -> None:
    graph.names[identity] = name_of(values.get("label") or identity, set(graph.names.values()))
    latitude, longitude = _number(values.get("Latitude")), _number(values.get("Longitude"))
    if latitude is not None and longitude is not None:
        graph.places[identity] = (latitude, longitude)


def name_of(label: str, taken: set[str]) -> str:
    """Returns a valid node name made from a label; a number makes it unique among `taken`."""
    stem = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    stem = (stem if stem[:1].isalpha() else f"r{stem}")[: LONGEST_NAME - 8].rstrip("-")
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _delay_us(graph: _Graph, a: str, b: str) -> int:
    """Returns the one-way delay between two nodes in whole microseconds, at least one."""
    if a not in graph.places or b not in graph.places:
        return round(NO_PLACE_MS * 1000)
    (lat1, lon1), (lat2, lon2) = (tuple(map(math.radians, graph.places[end])) for end in (a, b))
    half = (
        math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return max(1, round(2 * EARTH_KM * math.asin(math.sqrt(half)) / FIBRE_KM_PER_MS * 1000))
