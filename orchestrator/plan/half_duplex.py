"""Plans half-duplex links and segments: the device through which both ends of a link, or all ports of a
segment, send, and the tc lines for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from contract.plan import Interface, Link, Segment

from ..queueing import half_duplex
from .naming import InterfaceNames, core_netns
from .netem import direction

if TYPE_CHECKING:  # labs load this module, and have the standard library only
    from ..topology.network import Segment as FileSegment

MEDIUM: Literal["medium"] = "medium"
# numbers of the proof's own stations: two, so that both can send at the same time whatever nodes there are
_STATIONS = (1, 2)


def with_one_transmitter(link: Link, names: InterfaceNames) -> Link:
    """Returns the link with one new device through which both directions send."""
    shared = names.allot(f"{link.name}-air")
    forward, reverse = (dataclasses.replace(way, shared=shared) for way in (link.forward, link.reverse))
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def medium(lab: str, name: str, source: FileSegment, names: InterfaceNames) -> Link:
    """Returns the half-duplex medium of a segment as a link, with two stations of the link proof at its ends:
    the frames of a station enter its port through the medium.
    """
    core = core_netns(lab)
    one, other = (
        direction(
            source.medium,
            source.mtu,
            (core, names.allot(f"{name}-s{n}")),
            (core, names.allot(f"{name}-p{n}")),
        )
        for n in _STATIONS
    )
    return with_one_transmitter(Link(name, name, name, MEDIUM, one, other), names)


def blocks(segments: Iterable[Segment], links: Iterable[Link]) -> dict[str, int]:
    """Returns for each segment the number of the tc filter block of its half-duplex medium in the core
    namespace; omits segments without such a medium.
    """
    media = {link.a for link in links if link.kind == MEDIUM}
    return {segment.name: number for number, segment in enumerate(segments, 1) if segment.name in media}


def ports(segment: str, interfaces: Iterable[Interface], links: Iterable[Link]) -> Iterator[str]:
    """Yields the devices through which frames enter a segment's bridge; links through a bridge VM are left
    out, since that VM's interfaces are among `interfaces`.
    """
    yield from (c.port for c in interfaces if c.segment == segment and c.bridge is None and c.port)
    for link in links:
        if link.forward.enter is not None:
            continue  # the link leads through a bridge VM, whose ports are interfaces of its own
        if link.kind == "segments":
            yield from (
                d.device for end, d in ((link.a, link.forward), (link.b, link.reverse)) if end == segment
            )
        elif link.kind == "access" and link.b == segment and link.reverse.netns == link.forward.netns:
            yield link.reverse.device  # the link's other end, if that link has a bridge of its own
        elif link.kind == MEDIUM and link.a == segment:
            yield from (link.forward.far_device, link.reverse.far_device)


def entering(
    segments: Iterable[Segment], interfaces: Iterable[Interface], links: Sequence[Link], media: Iterable[Link]
) -> str:
    """Returns `tc -batch` lines that send frames entering the ports of half-duplex segments through their
    transmitters.

    media: all media of the lab. Only media that are also in `links` are created, since the others exist
    already.
    """
    cards, by_name = list(interfaces), {link.a: link for link in media if link.kind == MEDIUM}
    hooked = {d.device for li in links if li.kind != MEDIUM for d in (li.forward, li.reverse) if d.shared}
    text = ""
    for segment, block in blocks(segments, by_name.values()).items():
        link, found = by_name[segment], list(ports(segment, cards, links))
        shared, stations = link.forward.carrier, (link.forward.far_device, link.reverse.far_device)
        text += half_duplex.join([port for port in found if port not in {*hooked, *stations}], block)
        text += half_duplex.redirect_block(block, shared) if link in links else ""
        for port in found:
            if port in stations:
                text += half_duplex.hook(port) + half_duplex.redirect(port, shared, "ingress")
            elif port in hooked:
                text += half_duplex.leave_proof(port) + half_duplex.redirect(port, shared, "ingress")
    return text
