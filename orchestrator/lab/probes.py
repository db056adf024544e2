"""Chooses the probe frames of every link and direction: number, size and spacing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from contract.plan import Direction, Impairment, Link
from orchestrator import queueing
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.operations import Probe
from orchestrator.plan.netem import FRAME_BYTES

# number of probe frames of all directions together: what the slowest lab kernel forwards in about a second
FRAMES_IN_ALL = 8_000
FRAMES_MOST, FRAMES_LEAST = 1000, 10
FRAMES_PLAIN = 5
SPACING_NS = 2 * MILLISECOND
LONGEST_NS = 2 * SECOND
SIZE = 512  # bytes of a frame; large, so that a flipped bit rarely hits the 14 bytes that identify it
SMALLEST = 60  # an Ethernet frame without its FCS
HEADER = 14

TRAIN_NS = SECOND  # longest duration of a train
# length of a fast train behind its first frames; a lateness of 0.1 ms is then an error of less than 1 %
TRAIN_TOLD_NS = 25 * MILLISECOND
TRAIN_FRAMES_IN_ALL, TRAIN_FRAMES_MOST, TRAIN_FRAMES_LEAST = 40_000, 6000, 40
TRAIN_FRAMES_ENOUGH = 200
# The shortest time to empty a queue for which a train may be sent back to back.
#
# A shorter queue makes the train too short. In virtual time, arrivals are known to 256 ns and lie up to 0.8
# us from a line; from 0.6 ms on, this shows a rate to 0.5 %. The sender continues while the queue empties.
TRAIN_SHORT_NS, TRAIN_FRAMES_SHORT = MILLISECOND, 4 * TRAIN_FRAMES_MOST
TRAIN_SIZE = 1514
FAST_NS = 100 * MILLISECOND  # trains shorter than this run one after the other
STAGGER_NS = 2 * SECOND  # the starts of all fast trains lie within this time
JITTER_TAIL = 4  # the published distributions reach this many jitters beyond the delay


# largest number of delays in one answer: some 50 MB, and a message has 64 MiB at most
ANSWERED_MOST = 1_500_000
BOTH = "both"  # stands for both directions of half duplex, in samples and proofs


def directions(links: Sequence[Link]) -> list[tuple[str, str, Direction]]:
    """Returns (link name, `forward` or `reverse`, direction) for both directions of every link."""
    return [
        (link.name, name, direction)
        for link in links
        for name, direction in (("forward", link.forward), ("reverse", link.reverse))
    ]


def length_ns(probes: Sequence[Probe]) -> int:
    """Returns the time (ns) until the last frame of the probes is sent; the probes run in parallel, each from
    its start. 0 without probes.
    """
    return max((p["start_ns"] + p["count"] * p["interval_ns"] for p in probes), default=0)


def in_calls(probes: list[Probe], most: int = ANSWERED_MOST) -> list[list[Probe]]:
    """Returns the probes as one list, or as several of equal length if their answers would otherwise have
    more than `most` delays.
    """
    timed = sum(p["count"] for p in probes if not p.get("counts_only"))
    parts = max(1, math.ceil(timed / most))

    def part(probe: Probe, k: int) -> Probe:
        return {**probe, "count": probe["count"] * (k + 1) // parts - probe["count"] * k // parts}

    cut = [[part(probe, k) for probe in probes] for k in range(parts)]
    return [[p for p in one if p["count"]] for one in cut] if parts > 1 else [probes]


def spaced_probes(links: Sequence[Link], longest_ns: int = LONGEST_NS) -> list[Probe]:
    """Returns one probe per direction for all quantities except the rate. Its frames are so far apart that
    they do not queue; for a direction without impairment there are few. The directions of a half-duplex link
    take turns.

    longest_ns: the longest duration of a direction's frames.
    """
    ways = directions(links)
    impaired = sum(d.impairment.present for _, _, d in ways)
    more = longest_ns / LONGEST_NS
    share = max(FRAMES_LEAST, min(int(FRAMES_MOST * more), int(FRAMES_IN_ALL * more) // max(1, impaired)))
    found = [
        _spaced(link, name, d, share if d.impairment.present else FRAMES_PLAIN, longest_ns)
        for link, name, d in ways
    ]
    return in_turns(found, links)


def in_turns(probes: list[Probe], links: Sequence[Link]) -> list[Probe]:
    """Sets the start of the reverse probe of each half-duplex link to the expected end of the forward one, in
    place; returns the same list.
    """
    shared = {link.name for link in links if link.half_duplex}
    ends = {
        p["link"]: p["start_ns"] + p["count"] * p["interval_ns"] + p["timeout_ns"] - SECOND
        for p in probes if p["link"] in shared and p["direction"] == "forward"
    }  # fmt: skip
    for probe in probes:
        if probe["direction"] == "reverse" and probe["link"] in ends:
            probe["start_ns"] = max(probe["start_ns"], ends[probe["link"]])
    return probes


def _spaced(link: str, name: str, direction: Direction, count: int, longest_ns: int) -> Probe:
    """Returns a probe of one direction with at least 5 and at most `count` frames, far enough apart that
    rate, jitter and slots do not make them queue.
    """
    impairment = direction.impairment
    size = spaced_size(impairment)
    interval = max(SPACING_NS, 4 * transmission_ns(size, impairment))
    if impairment.rate_bps:  # with a rate, frames do not overtake: one that is late holds the next one back
        spread = _spread(impairment) * impairment.jitter_ns
        interval = max(interval, spread + 2 * transmission_ns(size, impairment))
    elif impairment.netem_stays:  # netem keeps these frames in order, too
        interval = max(interval, _spread(impairment) * impairment.jitter_ns)
    if impairment.slot is not None:  # each frame must find a slot of its own
        longest = impairment.delay_ns + _spread(impairment) * impairment.jitter_ns
        interval = max(interval, longest + 2 * impairment.slot.max_ns + SPACING_NS)
    interval = max(interval, _with_room_ns(impairment, interval))
    count = max(FRAMES_PLAIN, min(count, longest_ns // interval))
    return probe_of(link, name, direction, count, size, interval)


def _with_room_ns(i: Impairment, interval_ns: int) -> int:
    """Returns the interval (ns) at which all frames that netem holds at a time, with their copies, fit into
    its limit; 0 if they fit at `interval_ns`.
    """
    room, copies = max(1, i.limit_packets - 1), 1 + i.duplicate
    fits = (i.delay_ns + i.jitter_ns) * copies < room * interval_ns
    if fits or i.queue is not None or not i.limit_packets:
        return 0
    return round(1.25 * longest_delay_ns(i) * copies / room)


def spaced_size(impairment: Impairment) -> int:
    """Returns the size of single frames (bytes): at most 512 and at most the link's longest frame; on a slow
    link without corruption, the frames are so small that they keep their usual spacing.
    """
    full = min(SIZE, _full_frame(impairment))
    if impairment.corrupt or not impairment.rate_bps:
        return full
    return min(full, max(SMALLEST, impairment.rate_bps * SPACING_NS // (4 * 8 * SECOND)))


def burst_probes(links: Sequence[Link]) -> list[Probe]:
    """Returns trains that exceed the rate, for every direction with a rate and without slots. Fast trains
    start one after another; the directions of a half-duplex link take turns.
    """
    rated = [way for way in directions(links) if way[2].impairment.rate_bps]
    ways = [way for way in rated if way[2].impairment.slot is None]  # slots would hide the frames' spacing
    share = TRAIN_FRAMES_IN_ALL // max(1, len(ways))
    return in_turns(staggered([train(link, name, d, share) for link, name, d in ways]), links)


def train(link: str, name: str, direction: Direction, share: int) -> Probe:
    """Returns a train: a head that fills the queue beyond the effect of jitter, then the frames that show the
    rate.

    The frames are sent back to back if the queue has room for enough of them and takes longer than a
    millisecond to empty. Otherwise they are sent at 1.5 times the rate, so that drops of the queue do not
    shorten the train.
    """
    requested = direction.impairment
    size = train_size(requested)
    spacing = max(1, transmission_ns(size, requested))
    head = at_once(requested) + 2 * requested.jitter_ns * JITTER_TAIL // spacing + 1
    told = max(TRAIN_FRAMES_LEAST, min(TRAIN_TOLD_NS // spacing, share))
    room, most = requested.limit_packets - head - 1, TRAIN_FRAMES_MOST
    if room >= min(told, TRAIN_FRAMES_ENOUGH) and requested.queue is None:
        held = min(told, room)
        if held * spacing < TRAIN_SHORT_NS:
            interval, most = max(1, spacing * 2 // 3), TRAIN_FRAMES_SHORT
        else:
            told, interval = held, 0
    else:
        head, interval = 3 * head, spacing * 2 // 3
        told = told * 3 // 2
    count = max(2, min(head + told, most, head + TRAIN_NS // spacing))
    return probe_of(link, name, direction, count, size, interval)


def train_size(impairment: Impairment) -> int:
    """Returns the size of a train's frames (bytes): the link's longest frame, at most 1,514; on a slow link,
    the frames are so small that twenty pass in a second, but have at least 60 bytes.
    """
    full = min(TRAIN_SIZE, _full_frame(impairment))
    return min(full, max(SMALLEST, impairment.rate_bps * TRAIN_NS // (20 * 8 * SECOND)))


def _full_frame(impairment: Impairment) -> int:
    """Returns the bytes of the longest frame that the link's MTU allows, without its FCS."""
    return impairment.frame_bytes - FRAME_BYTES + HEADER


def staggered(trains: list[Probe]) -> list[Probe]:
    """Sets the starts of trains, in place: a fast one starts when the fast ones before it have finished
    (sooner if these starts would exceed 2 s), a slow one at once.
    """
    spans = [p["timeout_ns"] - SECOND for p in trains]
    fast = sum(span for span in spans if span <= FAST_NS)
    shrink = min(1.0, STAGGER_NS / fast) if fast else 1.0
    start = 0
    for probe, span in zip(trains, spans, strict=True):
        if span <= FAST_NS:
            probe["start_ns"] = start
            start += round(span * shrink)
    return trains


def probe_of(link: str, name: str, d: Direction, count: int, size: int, interval_ns: int) -> Probe:
    """Returns a probe of one direction that starts at once. Its timeout allows for the impairment and one
    second more; if a bridge VM carries the direction, the probe goes from tap to tap.
    """
    i = d.impairment
    # Waits one second longer than the impairment explains, because a slow machine is not the link's fault.
    slot_ns = i.slot.max_ns if i.slot is not None else 0
    wait = SECOND + i.delay_ns + 5 * i.jitter_ns + 2 * slot_ns + count * transmission_ns(size, i)
    netns, device, far = d.netns, d.device, d.far_device
    if d.enter is not None and d.leave is not None:  # the probe goes through a bridge VM, from tap to tap
        netns, device, far = d.far_netns, d.enter, d.leave
    return {
        "link": link, "direction": name, "netns": netns, "device": device, "far_netns": d.far_netns,
        "far_device": far, "count": count, "size": size, "start_ns": 0, "interval_ns": interval_ns,
        "timeout_ns": wait,
    }  # fmt: skip


def at_once(impairment: Impairment) -> int:
    """Returns the number of frames of a train that pass before the queue limits the rate, and so do not show
    the rate; 0 if the queue lets none pass.
    """
    queue = queueing.queue_of(impairment)
    held = queue.at_once_bytes(impairment) if queue is not None else 0
    return held // train_size(impairment) + 1 if held else 0


def longest_delay_ns(impairment: Impairment) -> int:
    """Returns the longest delay (ns) of a frame that does not wait for others. It is the delay plus one
    jitter for a uniform distribution, else plus four jitters; the pareto distribution may rarely exceed that.
    """
    return impairment.delay_ns + _tail(impairment) * impairment.jitter_ns


def _spread(impairment: Impairment) -> int:
    """Returns the distance from the shortest to the longest delay, in units of the jitter, without the rare
    tails of published distributions: 2 for uniform, 4 for netem's others, 8 for a table of the user.
    """
    return {"uniform": 2, "normal": 4, "pareto": 4, "paretonormal": 4}.get(impairment.distribution, 8)


def _tail(impairment: Impairment) -> int:
    """Returns how far a distribution reaches beyond the mean delay, in units of the jitter."""
    return 1 if impairment.distribution == "uniform" else JITTER_TAIL


def transmission_ns(size: int, impairment: Impairment) -> int:
    """Returns the transmission time (ns) of a frame of `size` bytes at the rate of unmarked frames; 0 without
    a rate.
    """
    rate_bps = queueing.lone_bps(impairment)
    return size * 8 * SECOND // rate_bps if rate_bps else 0
