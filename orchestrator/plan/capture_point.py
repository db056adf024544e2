"""Determines the network namespace and device of a capture point, for the plan and for a running lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contract.plan import Capture, Interface, Link, Segment

from .naming import core_netns, node_netns


def capture_point(
    lab: str,
    name: str,
    at: str,
    segments: Iterable[Segment],
    interfaces: Mapping[str, Sequence[Interface]],
    links: Iterable[Link],
    *,
    snaplen: int,
    filter: str,
    keep: bool,
    limit_bytes: int = 0,
    compress: str = "",
    to: str = "",
) -> Capture:
    """Returns the capture `name` at "node NAME", "segment NAME" or "link NAME", in the core namespace, or
    inside the node if its first interface or the link has no device there. That node, segment or link must
    exist.
    """
    kind, target = at.split(" ")
    link = next(li for li in links if li.name == target) if kind == "link" else None
    netns, device = core_netns(lab), _device(kind, target, segments, interfaces, link)
    if not device:  # a NIC, or an end of a link between nodes, is captured inside the node
        node = target if link is None else link.a
        cards = interfaces[node]
        card = cards[0] if link is None else next(c for c in cards if c.segment == link.name)
        netns, device = node_netns(lab, node), card.name
    return Capture(
        name, at, netns, device, snaplen, filter, keep, limit_bytes=limit_bytes, compress=compress, to=to
    )


def _device(
    kind: str,
    target: str,
    segments: Iterable[Segment],
    interfaces: Mapping[str, Sequence[Interface]],
    link: Link | None,
) -> str:
    """Returns the device in the core namespace where packets of a capture point are visible; "" if there is
    none.

    The port of a node's first interface shows the packets between node and bridge. A bridge (promiscuous
    while captured) shows each frame that enters the segment once. The device of a link shows the frames of
    both directions.
    """
    if kind == "node":
        return interfaces[target][0].port
    if link is None:
        return next(s.bridge for s in segments if s.name == target)
    if link.forward.enter is not None:
        return link.forward.enter
    if link.kind == "nodes" and not link.through_core:
        return ""
    return link.reverse.device if link.kind == "access" else link.forward.device
