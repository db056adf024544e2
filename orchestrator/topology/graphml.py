"""Converts a GraphML file (as in the Topology Zoo) into a topology of routers, with a link for each edge.
Nodes without an edge and edges from a node to itself are left out.
The delay of a link is that of light in fibre between the positions of its ends, or 1 ms if one is unknown.
Its rate is the edge's `LinkSpeedRaw`, if the file has one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from ..language.markup import Element, elements
from ..language.problem import Problem, TopologyError
from ..language.scalars import LONGEST_NAME
from ..language.source import LARGEST_FILE

MOST_PARTS = 4000  # largest number of nodes and edges; the Topology Zoo's largest graph has 1,649
REMEDY = "name a GraphML file with nodes and edges"
EARTH_KM = 6371.0
FIBRE_KM_PER_MS = 200.0  # two thirds of the speed of light
# Attributes of edges, from the Topology Zoo and from drawings, that do not describe the behaviour of a link.
_ABOUT_EDGES = frozenset((
    "LinkSpeed", "LinkSpeedUnits", "LinkLabel", "LinkNote", "LinkType", "LinkStatus", "id", "key", "label",
    "description", "url", "",
))  # fmt: skip
NO_PLACE_MS = 1.0  # delay of an edge with an end of unknown position


@dataclass
class _Graph:
    names: dict[str, str] = field(default_factory=dict)  # id -> name in the topology
    taken: set[str] = field(default_factory=set)  # the names that are in use
    places: dict[str, tuple[float, float]] = field(default_factory=dict)  # latitude, longitude
    # Ids of both ends, and the rate in bit/s (0: unknown).
    edges: list[tuple[str, str, float]] = field(default_factory=list)


def topology_text(file: str, content: bytes, name: str, *, hosts: bool = False) -> str:
    """Returns the topology's text; `hosts` adds a node behind each router. Raises TopologyError if the file
    holds no graph.
    """
    graph = _graph(file, _root(file, content))
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
    """Returns a line on each part of a GraphML file that the topology lacks: nodes without an edge to another
    node, edges from a node to itself, unread attributes of edges, directions and ports. Raises TopologyError
    if the file has no graph.
    """
    root = _root(file, content)
    graph, keys = _graph(file, root), _keys(root)
    edges = list(root.below("edge"))
    ends = [(_attribute(edge, "source"), _attribute(edge, "target")) for edge in edges]
    nodes = [_attribute(node, "id") for node in root.below("node")]
    found = [f"the node {node} has no edge to another one" for node in nodes if node not in graph.names]
    found += [f"the edge from {a} to itself" for a, b in ends if a == b]
    read = {*_ABOUT_EDGES, "LinkSpeedRaw"}
    unread = sorted({key for edge in edges for key in _values(edge, keys)} - read)
    found += [f"the attribute {key} of edges" for key in unread]
    usual = {_attribute(one, "edgedefault") for one in root.below("graph")} == {"directed"}
    own = {"": usual, "true": True, "false": False}
    ways = {
        pair for pair, edge in zip(ends, edges, strict=True) if own.get(_attribute(edge, "directed"), usual)
    }
    twice = sorted({(a, b) for a, b in ways if a < b and (b, a) in ways})
    found += [f"the directions of {a} and {b}: each of their edges is a link both ways" for a, b in twice]
    alone = sum((b, a) not in ways for a, b in ways if a != b)
    if alone:
        found.append(f"the direction of {alone} edges: each is a link both ways")
    ports = sum(bool(_attribute(edge, "sourceport") or _attribute(edge, "targetport")) for edge in edges)
    found += [f"the ports of {ports} edges"] * bool(ports)
    return found


def _root(file: str, content: bytes) -> Element:
    if len(content) > LARGEST_FILE:
        rule = f"is larger than {LARGEST_FILE} bytes"
        raise TopologyError([Problem(file, 0, "", "", rule, "name a smaller file")])
    return elements(file, content, REMEDY)


def _attribute(element: Element, name: str) -> str:
    return element.attributes.get(name, "")


def _keys(root: Element) -> dict[str, str]:
    return {_attribute(key, "id"): _attribute(key, "attr.name") for key in root.below("key")}


def _graph(file: str, root: Element) -> _Graph:
    """Returns the graph of the file; TopologyError with the line of a part that cannot be imported."""

    def refuse(element: Element, rule: str) -> TopologyError:
        return TopologyError([Problem(file, element.line, "", "", rule, REMEDY)])

    keys, graph = _keys(root), _Graph()
    usual = {  # the values of a node or an edge without one of its own
        _attribute(key, "attr.name"): default.text
        for key in root.below("key")
        for default in key.below("default")
    }
    nodes, edges = list(root.below("node")), list(root.below("edge"))
    if (hyper := next(root.below("hyperedge"), None)) is not None:
        raise refuse(hyper, "has a hyperedge, which cannot be taken over")
    if len(nodes) + len(edges) > MOST_PARTS:
        raise refuse(root, f"has {len(nodes) + len(edges)} nodes and edges, more than {MOST_PARTS}")
    graphs = list(root.below("graph"))
    if len(graphs) > 1:
        raise refuse(graphs[1], "has a graph more, within a node or beside the first")
    for node in nodes:
        if _attribute(node, "id") in graph.names:
            raise refuse(node, f'has a second node of the id "{_attribute(node, "id")}"')
        _node(graph, _attribute(node, "id"), usual | _values(node, keys))
    for edge in edges:
        a, b = _attribute(edge, "source"), _attribute(edge, "target")
        if a not in graph.names or b not in graph.names:
            raise refuse(edge, f'has an edge from "{a}" to "{b}", and no node of that id')
        if a != b:
            values = usual | _values(edge, keys)
            graph.edges.append((a, b, _number(values.get("LinkSpeedRaw")) or 0.0))
    if not graph.edges:
        raise refuse(root, "has no edge between two nodes")
    joined = {end for a, b, _ in graph.edges for end in (a, b)}
    graph.names = {one: name for one, name in graph.names.items() if one in joined}
    return graph


def _values(element: Element, keys: dict[str, str]) -> dict[str, str]:
    return {keys.get(_attribute(d, "key"), ""): d.text for d in element.below("data")}


def _node(graph: _Graph, identity: str, values: dict[str, str]) -> None:
    graph.names[identity] = name_of(values.get("label") or identity, graph.taken)
    graph.taken.add(graph.names[identity])
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
