"""Where a lab's segments, nodes and links stand on the page: groups folded or not, placed by graphviz.

In words of `inspect` (docs/contracts/control.md), so that nodes that came later are drawn too.
Names go to graphviz as numbers only.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Container
from dataclasses import asdict, dataclass
from typing import Any

ROOMY = 16  # boxes with figures in them; more are small, so that their names can be read in one view
READABLE = 60  # boxes; more are placed by forces, which is faster and fills the space
PATIENCE_S = 30
_NARROWEST = {"segment": 90, "node": 190, "group": 190, "frame": 190}  # pixels, for what is said of it
ALL = "*"
STUB, BETWEEN, TITLE, WIDE = 22, 8, 28, 0.9  # pixels in a frame, and how much wider than high it is
POINTS = 72  # of an inch, in which graphviz answers


@dataclass
class Box:
    """A segment, a node, or a group's nodes; x and y of its centre, in pixels."""

    kind: str  # segment, node, group; frame: around the nodes of an unfolded group
    name: str
    members: list[str]
    links: list[str]  # of a segment: its medium
    role: str = ""  # router, server, client or none: how it looks
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    columns: int = 0  # of an unfolded group's nodes
    inside: int | None = None  # the frame that a node stands in


@dataclass(frozen=True)
class Edge:
    """Between two boxes by their places; `links`: what carries it, none where only a bridge does."""

    a: int
    b: int
    links: list[str]
    stub: int = 0  # of a node in a frame: drawn at its left (-1) or right (1), the rest with the frame


def drawing(network: dict[str, Any], unfolded: Container[str] = ()) -> dict[str, Any]:
    """{boxes, edges, width, height, note} of `inspect`'s nodes, links and segments; groups of these names
    (ALL: any) are unfolded.
    """
    boxes, edges = _shapes(network)
    opened = [b for b in boxes if b.kind == "group" and (ALL in unfolded or b.name in unfolded)]
    small = len(boxes) + sum(len(box.members) for box in opened) > ROOMY
    for box in boxes:
        letters = min(28, len(_title(box)))
        box.width, box.height = (
            (34 + 6.2 * letters, 30) if small else (max(_NARROWEST[box.kind], 56 + 7.4 * letters), 56)
        )
    cells = {id(box): _cell(box, small) for box in opened}
    for box in opened:
        _frame(box, *cells[id(box)])
    note = _place(boxes, edges)
    for box in opened:
        edges = _unfold(network, boxes, edges, box, *cells[id(box)])
    return {
        "boxes": [asdict(box) for box in boxes], "edges": [asdict(edge) for edge in edges], "note": note,
        "small": small,
        "width": max((b.x + b.width / 2 for b in boxes), default=0) + 24,
        "height": max((b.y + b.height / 2 for b in boxes), default=0) + 24,
    }  # fmt: skip


def _cell(box: Box, small: bool) -> tuple[float, float]:
    """Width and height of a node's box in an unfolded group."""
    letters = min(28, max(map(len, box.members)))
    return (34 + 6.2 * letters, 30) if small else (max(_NARROWEST["node"], 56 + 7.4 * letters), 56)


def _frame(box: Box, width: float, height: float) -> None:
    """Make room for the group's nodes, in rows."""
    column, row = width + STUB, height + BETWEEN
    count = len(box.members)
    box.kind, box.columns = "frame", min(count, max(1, round(math.sqrt(count * row * WIDE / column))))
    box.width = box.columns * column + STUB
    box.height = math.ceil(count / box.columns) * row + BETWEEN + TITLE


def _unfold(
    network: dict[str, Any], boxes: list[Box], edges: list[Edge], frame: Box, width: float, height: float
) -> list[Edge]:
    """The frame's nodes, in its place; edges with each node's own link."""
    at, first = boxes.index(frame), len(boxes)
    left, top = frame.x - frame.width / 2 + STUB, frame.y - frame.height / 2 + TITLE
    for number, name in enumerate(frame.members):
        row, column = divmod(number, frame.columns)
        x, y = left + column * (width + STUB) + width / 2, top + row * (height + BETWEEN) + height / 2
        role = _role(network["nodes"][name])
        boxes.append(Box("node", name, [name], [], role, x, y, width, height, inside=at))
    place_of = {name: first + number for number, name in enumerate(frame.members)}
    found: list[Edge] = []
    for edge in edges:
        if edge.a != at:  # access links are the node's first
            found.append(edge)
            continue
        found.append(Edge(at, edge.b, []))
        side = -1 if boxes[edge.b].x < frame.x else 1
        found += [Edge(place_of[network["links"][n]["a"]], edge.b, [n], side) for n in edge.links]
    return found


def _title(box: Box) -> str:
    return box.name if len(box.members) < 2 else f"{box.name} x {len(box.members)}"


def _shapes(network: dict[str, Any]) -> tuple[list[Box], list[Edge]]:
    nodes, links = network["nodes"], network["links"]
    boxes = [Box("segment", s["name"], [], []) for s in network["segments"]]
    rails = {box.name: place for place, box in enumerate(boxes)}
    wired = {end for link in links.values() if link["kind"] == "nodes" for end in (link["a"], link["b"])}
    place_of: dict[str, int] = {}
    groups: dict[str, int] = {}
    for name, node in nodes.items():
        alone = name in wired or node["group"] == name
        if not alone and node["group"] in groups:
            place = groups[node["group"]]
            boxes[place].members.append(name)
        else:
            place = len(boxes)
            shown = name if alone else node["group"]
            boxes.append(Box("node" if alone else "group", shown, [name], [], _role(node)))
            if not alone:
                groups[node["group"]] = place
        place_of[name] = place
    for box in boxes:
        if box.kind == "group" and len(box.members) == 1:
            box.kind, box.name = "node", box.members[0]
    return boxes, _edges(network, boxes, rails, place_of)


def _role(node: dict[str, Any]) -> str:
    roles = node.get("roles", ())
    if node.get("forward") or "router" in roles:
        return "router"
    return next(("server" for role in roles if role in ("broker", "server")), "")


def _edges(
    network: dict[str, Any], boxes: list[Box], rails: dict[str, int], place_of: dict[str, int]
) -> list[Edge]:
    joined: dict[tuple[int, int], list[str]] = {}
    single: list[Edge] = []
    for name, node in network["nodes"].items():
        for card in node["interfaces"]:
            if card["segment"] in rails:
                joined.setdefault((place_of[name], rails[card["segment"]]), [])
    for name, link in network["links"].items():
        a, b = link["a"], link["b"]
        if link["kind"] == "access" and a in place_of and b in rails:
            joined.setdefault((place_of[a], rails[b]), []).append(name)
        elif link["kind"] == "medium" and a in rails:
            boxes[rails[a]].links.append(name)
        elif link["kind"] == "segments" and a in rails and b in rails:
            single.append(Edge(rails[a], rails[b], [name]))
        elif link["kind"] == "nodes" and a in place_of and b in place_of:
            single.append(Edge(place_of[a], place_of[b], [name]))
    return [Edge(a, b, names) for (a, b), names in joined.items()] + single


def _place(boxes: list[Box], edges: list[Edge]) -> str | None:
    """Set x and y; a remedy where graphviz could not and a plain grid stands instead."""
    engine = "sfdp" if len(boxes) > READABLE else "neato" if _cyclic(len(boxes), edges) else "dot"
    command = [engine, "-Tplain", *([] if engine == "dot" else ["-Goverlap=prism", "-Gsep=+14"])]
    try:
        done = subprocess.run(
            command, input=_dot(boxes, edges), capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        _grid(boxes)
        return f"drawn as a grid: {command[0]} (graphviz) did not place it: {type(error).__name__}"
    lines = [line.split() for line in done.stdout.splitlines()]
    height = next(float(line[3]) for line in lines if line[0] == "graph")
    for line in lines:
        if line[0] == "node":
            box = boxes[int(line[1])]
            box.x, box.y = float(line[2]) * POINTS + 24, (height - float(line[3])) * POINTS + 24
    return None


def _dot(boxes: list[Box], edges: list[Edge]) -> str:
    longest, shortest = (3.0, 1.6) if len(boxes) > ROOMY else (5.2, 2.4)  # inches
    lines = ["graph lab { rankdir=LR; nodesep=0.5; ranksep=1.1; K=1.6; node [shape=box, fixedsize=true];"]
    lines += [
        f'{place} [label="", width={box.width / POINTS:.3f}, height={box.height / POINTS:.3f}];'
        for place, box in enumerate(boxes)
    ]
    far = {edge.b for edge in edges if boxes[edge.a].kind == boxes[edge.b].kind == "segment"}
    for e in edges:
        # Nodes of a far segment stand behind it, so that a path reads from left to right.
        a, b = (e.b, e.a) if e.b in far and boxes[e.a].kind != "segment" else (e.a, e.b)
        # What is said of a link needs room beside it; those of an unfolded group are drawn inside.
        said = e.links and "frame" not in (boxes[e.a].kind, boxes[e.b].kind)
        lines.append(f"{a} -- {b} [minlen={4 if said else 1}, len={longest if said else shortest}];")
    return "\n".join([*lines, "}"])


def _cyclic(boxes: int, edges: list[Edge]) -> bool:
    """Whether some way leads back: ranks from left to right would then cross the page with it."""
    of = list(range(boxes))

    def root(place: int) -> int:
        while of[place] != place:
            of[place] = of[of[place]]
            place = of[place]
        return place

    for a, b in {(min(e.a, e.b), max(e.a, e.b)) for e in edges}:
        if root(a) == root(b):
            return True
        of[root(a)] = root(b)
    return False


def _grid(boxes: list[Box]) -> None:
    columns = max(1, math.ceil(math.sqrt(len(boxes))))
    for place, box in enumerate(boxes):
        box.x, box.y = 140 + 240 * (place % columns), 60 + 110 * (place // columns)
