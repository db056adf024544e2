"""Finds the segments whose bridges discard frames because of links that went down, which no counter shows."""

from __future__ import annotations

from collections.abc import Iterator

from contract.plan import Plan

REASON = (
    "after a link went down, bridges send its addresses' frames to all ports, and others discard those that "
    "came from where they know the address to be"
)


def disturbed(plan: Plan) -> set[str]:
    """Returns the segments that an event of the timeline disturbs in this way: a link goes down in their
    broadcast domain. A link between segments does not disturb the segments at its own ends: there the
    bridge forgets the addresses behind the link, and no frame comes back over it.
    """
    domains = list(_domains(plan))
    found: set[str] = set()
    for ends, spared in _cuts(plan):
        for domain in domains:
            if domain & ends:
                found |= domain - spared
    return found


def _cuts(plan: Plan) -> Iterator[tuple[set[str], set[str]]]:
    """Yields two sets of segments for each link or node that an event takes down: the segments that it
    touches, and those of them that it does not disturb.

    The second set has both ends of a link that joins segments; for other links and for nodes it is empty.
    """
    links = {link.name: link for link in plan.links}
    of_node = {node.name: {one.segment for one in node.interfaces if one.segment} for node in plan.nodes}
    for event in plan.events:
        if event.action == "link-down":
            for link in (links[name] for name in event.targets if name in links):
                ends = {link.a, link.b, *(one for pair in link.joins for one in pair)}
                yield ends, ends if link.kind == "segments" else set()
        elif event.action in ("stop", "kill") and event.args.get("software") is None:
            yield from ((of_node.get(name, set()), set()) for name in event.targets)


def _domains(plan: Plan) -> Iterator[set[str]]:
    """Yields sets of segments; the segments of one set are joined by links."""
    of = {segment.name: {segment.name} for segment in plan.segments}
    for link in plan.links:
        for a, b in link.joins or ((link.a, link.b),):
            if {a, b} <= of.keys() and of[a] is not of[b]:
                joined = of[a] | of[b]
                of.update(dict.fromkeys(joined, joined))
    seen: list[set[str]] = []
    for domain in of.values():
        if not any(domain is one for one in seen):
            seen.append(domain)
            yield domain
