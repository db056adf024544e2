"""Trials of a path: the interfaces they run between, and the lowest rate asked of the links between."""

from __future__ import annotations

from ..model import Direction, Frames, Interface, Link
from ..topology.frames import FramesOptions
from .network import Network


def plan_frames(network: Network, node: str, wanted: FramesOptions) -> Frames:
    """The trials from `node`; checks have seen that the two nodes have a segment or a link in common."""
    ours, theirs = ends(network, node, wanted.to)
    return Frames(
        to=wanted.to,
        interface=ours.name,
        to_interface=theirs.name,
        sizes=tuple(sorted(set(wanted.sizes))),
        tests=tuple(wanted.tests),
        line_rate_bps=wanted.line_rate,
        path_rate_bps=min(_rates(network, node, ours, wanted.to, theirs), default=0),
        trial_ns=wanted.trial,
        settle_ns=wanted.settle,
        resolution=wanted.resolution,
        tolerate=wanted.tolerate,
        loss_step=wanted.loss_step,
        latency_trials=wanted.latency_trials,
        latency_trial_ns=wanted.latency_trial or wanted.trial,
        burst_ns=wanted.burst,
        burst_trials=wanted.burst_trials,
        bypass=ours.nic is not None and not _impaired(network, node, ours.segment),
    )


def ends(network: Network, node: str, to: str) -> tuple[Interface, Interface]:
    """The first two interfaces of the nodes that are in one subnet."""
    subnets = network.subnets
    return next(
        (ours, theirs)
        for ours in network.interfaces[node]
        for theirs in network.interfaces[to]
        if subnets[ours.segment] == subnets[theirs.segment]
    )


def _rates(network: Network, node: str, ours: Interface, to: str, theirs: Interface) -> list[int]:
    """The rates that the directions on the way are asked to have."""
    way = [
        d
        for link in network.links
        if link.kind == "access"
        for d in _access(link, node, ours.segment, to, theirs.segment)
    ]
    way += _between([k for k in network.links if k.kind != "access"], ours.segment, theirs.segment)
    return [d.impairment.rate_bps for d in way if d.impairment.rate_bps]


def _impaired(network: Network, node: str, segment: str) -> bool:
    """Whether the queue discipline of the node's own interface carries an impairment."""
    return any(
        link.forward.impairment.present
        for link in network.links
        if link.kind == "access" and (link.a, link.b) == (node, segment)
    )


def _access(link: Link, node: str, segment: str, to: str, to_segment: str) -> list[Direction]:
    found = [link.forward] if (link.a, link.b) == (node, segment) else []
    return found + ([link.reverse] if (link.a, link.b) == (to, to_segment) else [])


def _between(links: list[Link], start: str, goal: str) -> list[Direction]:
    """The directions from segment to segment; there are no loops."""
    waiting: list[tuple[str, list[Direction]]] = [(start, [])]
    seen = {start}
    while waiting:
        segment, so_far = waiting.pop()
        if segment == goal:
            return so_far
        for link in links:
            for here, there, d in ((link.a, link.b, link.forward), (link.b, link.a, link.reverse)):
                if here == segment and there not in seen:
                    seen.add(there)
                    waiting.append((there, [*so_far, d]))
    return []
