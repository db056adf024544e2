"""Draws a plan with graphviz: segments and groups of nodes as boxes or ellipses, links as edges with their
impairments.
"""

from __future__ import annotations

import html
import re
import subprocess
import textwrap
from collections.abc import Iterator

from contract.plan import Direction, Plan

from .summary import GroupView, LinkView, groups, impairment_words, link_views, software_words

# Okabe and Ito's palette, which colour-blind readers can tell apart; light fills under dark text.
_INK, _FAINT = "#1b2a33", "#5b6b75"
_SEGMENT, _NODE, _SERVER, _EDGE, _IMPAIRED = "#d7e8f4", "#ffffff", "#fdebc8", "#8a9aa5", "#b3560e"
_ROUTER = "#dff0e2"
# The margins are wide, because the reader's font may be wider than the font that graphviz measured.
_MARGIN = "0.32,0.12"
_FONT = "Helvetica,Arial,sans-serif"


class GraphError(RuntimeError):
    """Raised if graphviz is not installed, takes too long or rejects the drawing."""


FORMATS = ("svg", "png", "pdf")


def graph(plan: Plan, form: str = "svg") -> bytes:
    """Returns the drawing as a file of one of FORMATS; raises GraphError, with the remedy, if graphviz' `dot`
    is not installed, fails, or takes more than 60 s.
    """
    try:
        done = subprocess.run(
            ["dot", f"-T{form}"], input=dot(plan).encode(), capture_output=True, timeout=60, check=False
        )
    except FileNotFoundError:
        raise GraphError("dot is not installed; apt-get install graphviz") from None
    except subprocess.TimeoutExpired:
        raise GraphError("dot did not end within 60 s; draw a smaller topology") from None
    if done.returncode != 0:
        raise GraphError(f"dot refused the drawing: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout


def dot(plan: Plan) -> str:
    """Returns the drawing in graphviz' language; the same plan always gives the same text."""
    return "\n".join(["graph lab {", *_style(), *_segments(plan), *_nodes(plan), *_edges(plan), "}", ""])


def _style() -> Iterator[str]:
    yield '  graph [rankdir=LR, nodesep=0.35, ranksep=1.1, bgcolor="transparent", pad=0.2, splines=true];'
    yield f'  node [fontname="{_FONT}", fontsize=11, fontcolor="{_INK}", color="{_FAINT}", penwidth=1.2];'
    yield f'  edge [fontname="{_FONT}", fontsize=10, fontcolor="{_INK}", color="{_EDGE}", penwidth=1.4];'


def _quoted(kind: str, name: str) -> str:
    return f'"{kind} {name}"'


def _label(title: str, lines: list[str], marks: list[str]) -> str:
    rows = [f"<b>{html.escape(title)}</b>"]
    rows += [f'<font point-size="9" color="{_FAINT}">{html.escape(line)}</font>' for line in lines]
    rows += [f'<font point-size="9" color="{_IMPAIRED}">{html.escape(mark)}</font>' for mark in marks]
    return "<" + "<br/>".join(rows) + ">"


def _segments(plan: Plan) -> Iterator[str]:
    for segment in plan.segments:
        detail = [*segment.subnets] + ([f"MTU {segment.mtu}"] if segment.mtu != 1500 else [])
        media = [link.forward for link in plan.links if (link.kind, link.a) == ("medium", segment.name)]
        detail += ["half duplex", *impairment_words(media[0].impairment)] if media else []
        label = _label(segment.name, detail, _captured(plan, f"segment {segment.name}"))
        shape = f'shape=box, style="filled,rounded", fillcolor="{_SEGMENT}", margin="{_MARGIN}"'
        yield f"  {_quoted('segment', segment.name)} [{shape}, label={label}];"


def _drawn(plan: Plan) -> list[GroupView]:
    """Returns the groups to draw; a member at an end of a link between nodes is a group of its own."""
    wired = {end for link in plan.links if link.kind == "nodes" for end in (link.a, link.b)}
    found: list[GroupView] = []
    for group in groups(plan):
        alone = [node for node in group.nodes if node.name in wired]
        rest = tuple(node for node in group.nodes if node.name not in wired)
        found += [GroupView(node.name, (node,)) for node in alone]
        found += [GroupView(group.name, rest)] if rest else []
    return found


def _captured(plan: Plan, at: str) -> list[str]:
    """Returns a line with the names of the captures at a capture point; empty if there are none."""
    names = [capture.name for capture in plan.captures if capture.at == at]
    return [f"capture {', '.join(names)}"] if names else []


def _nodes(plan: Plan) -> Iterator[str]:
    for group in _drawn(plan):
        count = len(group.nodes)
        title = group.name if count == 1 else f"{group.name} \u00d7 {count}"
        lines = [group.addresses, *_programs(plan, group), *_limits(group)]
        marks = [mark for node in group.nodes[:50] for mark in _captured(plan, f"node {node.name}")]
        serves = any(software.role in ("broker", "server") for software in group.nodes[0].software)
        # A group of several nodes gets a double outline.
        fill = _SERVER if serves else _ROUTER if group.nodes[0].forward else _NODE
        outline = "ellipse" if group.nodes[0].forward else "box"
        shape = f'shape={outline}, style=filled, fillcolor="{fill}", margin="{_MARGIN}"'
        piled = ", peripheries=2" if count > 1 else ""
        yield f"  {_quoted('node', group.name)} [{shape}{piled}, label={_label(title, lines, marks)}];"


def _programs(plan: Plan, group: GroupView) -> list[str]:
    words = [software_words(software, plan.flows) for software in group.nodes[0].software]
    return [line for text in words for line in _wrapped(text, 34)]


# The expression matches the space between a number and its unit or the word that it counts; they stay on one
# line.
_KEPT = re.compile(r" (?=/s|B,|\d+(?:,|$))")


def _wrapped(text: str, width: int) -> list[str]:
    kept = _KEPT.sub("\u00a0", text)
    return textwrap.wrap(kept, width, break_long_words=False)


def _limits(group: GroupView) -> list[str]:
    node = group.nodes[0]
    found = [] if node.vm is None else [f"virtual machine, {node.vm.image}"]
    for word, mhz, cores in (
        ("limit", node.cpu_limit_mhz, node.cpu_limit_cores),
        ("reserve", node.cpu_reserve_mhz, node.cpu_reserve_cores),
    ):
        if mhz is not None or cores is not None:
            found.append(f"CPU {word} {mhz:g} MHz" if mhz is not None else f"CPU {word} {cores:g} cores")
    return found


def _edges(plan: Plan) -> Iterator[str]:
    views = link_views(plan)
    access = {(view.a, view.b): view for view in views if view.links[0].kind == "access"}
    far = {view.b for view in views if view.links[0].kind == "segments"}
    rails = {segment.name for segment in plan.segments}
    for group in _drawn(plan):
        for segment in group.segments:
            if segment not in rails:
                continue  # an end of a link between nodes, which is drawn below
            node, rail, view = (
                _quoted("node", group.name),
                _quoted("segment", segment),
                access.get((group.name, segment)),
            )
            # The drawing places nodes of a link's far segment behind the segment, so that a path reads from
            # left to right.
            turned = segment in far
            yield _edge(rail if turned else node, node if turned else rail, plan, view, turned)
    for view in views:
        kind = view.links[0].kind
        if kind not in ("access", "medium"):
            what = "segment" if kind == "segments" else "node"
            yield _edge(_quoted(what, view.a), _quoted(what, view.b), plan, view, False)
            for one in view.links[0].trunk:  # the link's impairments stand at its first pair
                yield _edge(_quoted(what, one.a), _quoted(what, one.b), plan, None, False)


def _edge(a: str, b: str, plan: Plan, view: LinkView | None, turned: bool) -> str:
    if view is None:
        return f"  {a} -- {b};"
    link = view.links[0]
    impaired = link.forward.impairment.present or link.reverse.impairment.present
    look = f'color="{_IMPAIRED}", penwidth=2.4' if impaired else "penwidth=2"
    return f"  {a} -- {b} [{look}, label={_edge_label(plan, view, turned)}];"


def _edge_label(plan: Plan, view: LinkView, turned: bool) -> str:
    link = view.links[0]
    lines = [f"<b>{html.escape(view.name)}</b>"] + (["half duplex"] if link.half_duplex else [])
    first, second = ("← ", "→ ") if turned else ("→ ", "← ")
    if link.forward.impairment == link.reverse.impairment:
        lines += _direction("⇄ ", link.forward)
    else:
        lines += _direction(first, link.forward) + _direction(second, link.reverse)
    lines += [f'<font color="{_IMPAIRED}">{mark}</font>' for mark in _captured(plan, f"link {link.name}")]
    return "<" + "<br/>".join(f" {line} " for line in lines) + ">"


def _direction(arrow: str, direction: Direction) -> list[str]:
    words = impairment_words(direction.impairment) or ["plain wire"]
    return [f"{arrow}{html.escape(words[0])}", *(html.escape(word) for word in words[1:])]
