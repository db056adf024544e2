"""Writes the notes on a multi-host lab that the user should check before trusting its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contract.plan import Link, Note, Plan

from ...language.units import text_ns
from ...topology.hosts import Underlay
from .tunnels import overhead

MOST_NAMES = 3


def host_notes(plan: Plan, underlay: Underlay) -> Iterator[Note]:
    """Yields notes on MTUs and tunnels, on captures of segments on several hosts, on delays below the
    underlay's, and on unknown memory, cores and clocks of hosts.
    """
    yield from _oversize(plan, underlay)
    yield from _captures(plan)
    yield from _delays(plan, underlay)
    for word, unknown in (
        ("memory", [host.name for host in plan.hosts if host.memory_bytes is None]),
        ("cores", [host.name for host in plan.hosts if host.cores is None]),
    ):
        if unknown:
            text = f"the {word} of {some(unknown)} is unknown: the plan assumes that it suffices"
            yield Note("hosts", text, f"write `{word}:` at the host, or vnet_{word} in the inventory")
    slow = [host.name for host in plan.hosts if host.core_mhz is None]
    if slow and any(node.cpu_reserve_mhz is not None for node in plan.nodes):
        text = f"nodes reserve MHz, and the clock is unknown for {some(slow)}: these are not counted"
        yield Note("hosts", text, "write `cpu_clock:` at the host, or vnet_cpu_clock in the inventory")


def some(names: Sequence[str]) -> str:
    """Returns the first three names as text, and the number of further ones."""
    shown, more = ", ".join(names[:MOST_NAMES]), len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _oversize(plan: Plan, underlay: Underlay) -> Iterator[Note]:
    """Yields a note if MTUs are lowered, or if frames are longer than the underlay carries in one packet."""
    around = overhead(plan.hosts)
    if underlay.oversize == "lower" and len(plan.hosts) > 1:
        text = f"MTUs above {underlay.mtu - around} are lowered to it, so that frames fit into the tunnels"
        yield Note(
            "underlay.oversize", text, "the lab is not quite the one that a single machine would carry"
        )
    elif long := [tunnel for tunnel in plan.tunnels if tunnel.mtu + around > underlay.mtu]:
        needed = max(tunnel.mtu for tunnel in long) + around
        text = (
            f"frames of {some([t.segment for t in long])} with more than {underlay.mtu - around} B above "
            "Ethernet are sent between hosts in two packets: with the tunnel's headers they have up to "
            f"{needed} B, the underlay's MTU is {underlay.mtu}"
        )
        remedy = (
            f"let the underlay carry {needed} (`underlay: {{mtu: {needed}}}`), or write `oversize: lower`"
        )
        yield Note("underlay.mtu", text, remedy)


def _captures(plan: Plan) -> Iterator[Note]:
    """Yields a note for each capture of a segment on several hosts, since the capture shows only the bridge
    of one host.
    """
    ends = {tunnel.segment: tunnel.ends for tunnel in plan.tunnels}
    for capture in plan.captures:
        kind, _, target = capture.at.partition(" ")
        if kind == "segment" and target in ends:
            text = f"sees what passes the bridge of {target} on {capture.host}, one of {len(ends[target])}"
            yield Note(
                f"captures.{capture.name}", text, "capture at nodes or links, or keep its nodes `near`"
            )


def _delays(plan: Plan, underlay: Underlay) -> Iterator[Note]:
    """Yields a note on links whose requested delay is lower than the underlay's delay between their hosts;
    none if the file states no such delay.
    """
    if not underlay.delay:
        return
    wide = {tunnel.segment for tunnel in plan.tunnels}
    short = [link.name for link in plan.links if _shorter(link, underlay.delay, wide)]
    if short:
        text = (
            f"{some(short)} ask for less delay than the {text_ns(underlay.delay)} that the underlay adds to "
            "what comes from another host"
        )
        yield Note("underlay.delay", text, "keep their nodes on one host (`near`), or ask for more delay")


def _shorter(link: Link, delay_ns: int, wide: set[str]) -> bool:
    """Returns whether a link over hosts, or an impaired one at a segment on several hosts, has less delay
    than `delay_ns` in a direction.
    """
    if not (link.over_hosts or {link.a, link.b} & wide):
        return False
    ways = [way.impairment for way in (link.forward, link.reverse)]
    asked = link.over_hosts or any(way.present for way in ways)
    return asked and any(way.delay_ns < delay_ns for way in ways)
