"""Computes the drawing of a lab for the page: positions of segments, nodes, groups and links.

The input is the answer to `inspect` (docs/contracts/control.md), which includes added nodes.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import asdict
from typing import Any

from orchestrator.cli.page.placing import ROOMY, Box, Edge, arrange

# Pixels; the widths have room for the figures.
_NARROWEST = {"segment": 90, "node": 190, "group": 190, "frame": 190}
ALL = "*"
# distances in pixels in a frame; WIDE: wanted ratio of height to width of a frame
STUB, BETWEEN, TITLE, WIDE = 22, 8, 28, 0.9


def drawing(network: dict[str, Any], unfolded: Container[str] = ()) -> dict[str, Any]:
    """Returns the drawing {boxes, edges, width, height, note, small} of the answer to `inspect`.

    unfolded: names of the groups whose nodes have boxes of their own (ALL: all groups). width, height: in
    pixels. note: None, or a sentence if graphviz failed. small: boxes have only names.
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
    note = arrange(boxes, edges)
    for box in opened:
        edges = _unfold(network, boxes, edges, box, *cells[id(box)])
    return {
        "boxes": [asdict(box) for box in boxes], "edges": [asdict(edge) for edge in edges], "note": note,
        "small": small,
        "width": max((b.x + b.width / 2 for b in boxes), default=0) + 24,
        "height": max((b.y + b.height / 2 for b in boxes), default=0) + 24,
    }  # fmt: skip


def _cell(box: Box, small: bool) -> tuple[float, float]:
    """Returns width and height, in pixels, of each node's box in the unfolded group."""
    letters = min(28, max(map(len, box.members)))
    return (34 + 6.2 * letters, 30) if small else (max(_NARROWEST["node"], 56 + 7.4 * letters), 56)


def _frame(box: Box, width: float, height: float) -> None:
    """Makes the group's box a frame that has room for its nodes, of this width and height, in rows."""
    column, row = width + STUB, height + BETWEEN
    count = len(box.members)
    box.kind, box.columns = "frame", min(count, max(1, round(math.sqrt(count * row * WIDE / column))))
    box.width = box.columns * column + STUB
    box.height = math.ceil(count / box.columns) * row + BETWEEN + TITLE


def _unfold(
    network: dict[str, Any], boxes: list[Box], edges: list[Edge], frame: Box, width: float, height: float
) -> list[Edge]:
    """Adds boxes for the frame's nodes to `boxes`; returns all edges, also one for each node's own link."""
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
        if edge.a != at:  # in an edge of a group, `a` is the group itself
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
