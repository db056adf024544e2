"""Places the boxes of a drawing with graphviz, from left to right if the network has no cycle.

Graphviz receives numbers instead of names.
"""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass

# largest number of boxes that are large enough for figures; with more, boxes are small and show names only
ROOMY = 16
READABLE = 60  # largest number of boxes that dot or neato places; with more, sfdp is faster
PATIENCE_S = 30  # longest wait in s for graphviz
POINTS = 72  # pixels in an inch, the unit of graphviz


@dataclass
class Box:
    """A box of the drawing: a segment, node, group or frame; x and y of its centre, in pixels."""

    kind: str  # segment, node, group, or frame (around the nodes of an unfolded group)
    name: str
    members: list[str]
    links: list[str]  # for a segment: the links of its medium
    role: str = ""  # router, server or empty: the style of the box
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    columns: int = 0  # for a frame: columns of its nodes
    inside: int | None = None  # for a node in a frame: index of the frame


@dataclass(frozen=True)
class Edge:
    """A line between two boxes, given by index; `links`: names of its links, empty for a plain port of a
    bridge.
    """

    a: int
    b: int
    links: list[str]
    stub: int = 0  # for a node in a frame: the line begins at its left (-1) or right (1)


def arrange(boxes: list[Box], edges: list[Edge]) -> str | None:
    """Sets x and y of the boxes; returns None, or a sentence if graphviz failed and they are in a grid."""
    engine = "sfdp" if len(boxes) > READABLE else "neato" if _cyclic(len(boxes), edges) else "dot"
    try:
        _engine(engine, boxes, edges)
        if engine == "dot" and _covered(boxes, edges):
            _engine(engine, boxes, edges, even=True)
    except (OSError, subprocess.SubprocessError) as error:
        _grid(boxes)
        return f"drawn as a grid: {engine} (graphviz) did not place it: {type(error).__name__}"
    return None


def _engine(engine: str, boxes: list[Box], edges: list[Edge], even: bool = False) -> None:
    """Sets x and y of the boxes by running this engine of graphviz; `even`: see `_dot`."""
    command = [engine, "-Tplain", *([] if engine == "dot" else ["-Goverlap=prism", "-Gsep=+14"])]
    text = _dot(boxes, edges, even)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    height = next(float(line[3]) for line in lines if line[0] == "graph")
    for line in lines:
        if line[0] == "node":
            box = boxes[int(line[1])]
            box.x, box.y = float(line[2]) * POINTS + 24, (height - float(line[3])) * POINTS + 24


def _covered(boxes: list[Box], edges: list[Edge]) -> bool:
    """Returns whether any line crosses a box that is not one of its two ends."""
    return any(
        box not in (boxes[e.a], boxes[e.b]) and _meets(boxes[e.a], boxes[e.b], box)
        for e in edges
        for box in boxes
    )


def _meets(a: Box, b: Box, box: Box) -> bool:
    """Returns whether the straight line between the centres of `a` and `b` crosses `box`."""
    begin, end = 0.0, 1.0
    for start, way, centre, size in (
        (a.x, b.x - a.x, box.x, box.width), (a.y, b.y - a.y, box.y, box.height)
    ):  # fmt: skip
        near, far = centre - size / 2 - start, centre + size / 2 - start
        if abs(way) < 1e-9:
            if near > 0 or far < 0:
                return False
            continue
        begin, end = max(begin, min(near / way, far / way)), min(end, max(near / way, far / way))
    return begin < end


def _dot(boxes: list[Box], edges: list[Edge], even: bool = False) -> str:
    """Returns the graph in the language of graphviz.

    even: all edges span equally many ranks, so that no line crosses a box in a rank between its ends.
    """
    longest, shortest = (3.0, 1.6) if len(boxes) > ROOMY else (5.2, 2.4)  # inches
    lines = ["graph lab { rankdir=LR; nodesep=0.5; ranksep=1.1; K=1.6; node [shape=box, fixedsize=true];"]
    lines += [
        f'{place} [label="", width={box.width / POINTS:.3f}, height={box.height / POINTS:.3f}];'
        for place, box in enumerate(boxes)
    ]
    depth = _depths(len(boxes), edges)
    for e in edges:
        a, b = (e.b, e.a) if depth[e.b] < depth[e.a] else (e.a, e.b)
        # A link's label needs space beside the line; links of an unfolded group have theirs inside the frame.
        said = e.links and "frame" not in (boxes[e.a].kind, boxes[e.b].kind)
        lines.append(
            f"{a} -- {b} [minlen={3 if even else 4 if said else 1}, len={longest if said else shortest}];"
        )
    return "\n".join([*lines, "}"])


def _depths(boxes: int, edges: list[Edge]) -> list[int]:
    """Returns the rank of each box, from left to right along the longest path.

    For a box with several neighbours, the rank is twice its distance from one end of the longest path between
    such boxes. A box with one neighbour comes directly after its neighbour, or before it if the neighbour is
    that end.
    """
    next_to: list[set[int]] = [set() for _ in range(boxes)]
    for e in edges:
        next_to[e.a].add(e.b)
        next_to[e.b].add(e.a)
    joins = [place for place in range(boxes) if len(next_to[place]) > 1]
    within = [{other for other in near if len(next_to[other]) > 1} for near in next_to]
    depth = [0] * boxes
    seen: set[int] = set()
    for start in joins:
        if start in seen:
            continue
        end = _farthest(start, within)
        root = min(end, _farthest(end, within))
        ways = _ways(root, within)
        seen |= set(ways)
        for place, far in ways.items():
            depth[place] = 2 * far
            for leaf in next_to[place] - within[place]:
                depth[leaf] = -1 if place == root else 2 * far + 1
    return depth


def _ways(start: int, next_to: list[set[int]]) -> dict[int, int]:
    """Returns, for each box that can be reached from `start`, the number of steps from there."""
    found, now = {start: 0}, [start]
    for place in now:
        for other in sorted(next_to[place] - found.keys()):
            found[other] = found[place] + 1
            now.append(other)
    return found


def _farthest(start: int, next_to: list[set[int]]) -> int:
    found = _ways(start, next_to)
    return max(found, key=lambda place: (found[place], -place))


def _cyclic(boxes: int, edges: list[Edge]) -> bool:
    """Returns whether the edges have a cycle (parallel edges do not count). With a cycle, ranks from left to
    right would need lines across the page.
    """
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
