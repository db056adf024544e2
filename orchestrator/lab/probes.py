"""The frames that prove links: how many, how large and how far apart, for every link and direction."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator import queueing
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.operations import Probe
from orchestrator.model import Direction, Impairment, Link

FRAMES_IN_ALL = 8_000  # about a second of frames in the slowest lab kernel
FRAMES_MOST, FRAMES_LEAST = 1000, 10
FRAMES_PLAIN = 5
SPACING_NS = 2 * MILLISECOND
LONGEST_NS = 2 * SECOND
SIZE = 512  # bytes of a frame; large, so that a flipped bit rarely hits the 14 bytes that make it ours
HEADER = 14
BURST_SIZE = 1000
BURST_NS = SECOND


def directions(links: Sequence[Link]) -> list[tuple[str, str, Direction]]:
    return [
        (link.name, name, direction)
        for link in links
        for name, direction in (("forward", link.forward), ("reverse", link.reverse))
    ]


def spaced_probes(links: Sequence[Link]) -> list[Probe]:
    """Frames so far apart that they do not queue: for all quantities but the rate."""
    ways = directions(links)
    impaired = sum(d.impairment.present for _, _, d in ways)
    share = max(FRAMES_LEAST, min(FRAMES_MOST, FRAMES_IN_ALL // max(1, impaired)))
    return [_spaced(link, name, d, share if d.impairment.present else FRAMES_PLAIN) for link, name, d in ways]


def _spaced(link: str, name: str, direction: Direction, count: int) -> Probe:
    impairment = direction.impairment
    interval = max(SPACING_NS, 4 * transmission_ns(SIZE, impairment))
    count = max(FRAMES_PLAIN, min(count, LONGEST_NS // interval))
    return _probe(link, name, direction, count, SIZE, interval)


def burst_probes(links: Sequence[Link]) -> list[Probe]:
    """Frames back to back through every direction with a rate, as many as its queue holds."""
    found = []
    for link, name, direction in directions(links):
        if rate := direction.impairment.rate_bps:
            first = at_once(direction.impairment)
            fits = rate * BURST_NS // SECOND // (BURST_SIZE * 8)
            count = max(2, first + min(200, fits, direction.impairment.limit_packets - 1))
            found.append(_probe(link, name, direction, count, BURST_SIZE, 0))
    return found


def _probe(link: str, name: str, d: Direction, count: int, size: int, interval_ns: int) -> Probe:
    i = d.impairment
    # A second beyond what the impairment explains: the machine may be slow, which is not the link's fault.
    wait = SECOND + i.delay_ns + 5 * i.jitter_ns + count * transmission_ns(size, i)
    netns, device, far = d.netns, d.device, d.far_device
    if d.enter is not None and d.leave is not None:  # through a bridge VM, from tap to tap
        netns, device, far = d.far_netns, d.enter, d.leave
    return {
        "link": link, "direction": name, "netns": netns, "device": device, "far_netns": d.far_netns,
        "far_device": far, "count": count, "size": size, "interval_ns": interval_ns,
        "timeout_ns": wait,
    }  # fmt: skip


def at_once(impairment: Impairment) -> int:
    """Frames of a burst that pass before the rate holds, and say nothing of it."""
    queue = queueing.queue_of(impairment)
    held = queue.at_once_bytes(impairment) if queue is not None else 0
    return held // BURST_SIZE + 1 if held else 0


def transmission_ns(size: int, impairment: Impairment) -> int:
    """At the rate that unmarked frames get."""
    rate_bps = queueing.lone_bps(impairment)
    return size * 8 * SECOND // rate_bps if rate_bps else 0
