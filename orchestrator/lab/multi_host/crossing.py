"""Measures the underlay between hosts before the run and compares it with the links whose frames cross it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from contract.plan import Link, Plan, Tunnel
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.hostpart import HostPart, ask_all
from orchestrator.lab.multi_host.underlay import HEAD, PROBE, TRAIN

PROBES, PROBE_NS, PROBE_BYTES = 100, 10 * MILLISECOND, 64
TRAIN_FRAMES = 200
SETTLE_NS = SECOND  # time to wait for the last frames, longer than the round trip of any useful underlay
LEAST = 10  # least number of round trips from which a delay is computed
ETHERNET = 14
MATTERS = 0.1  # if the clocks' error is above this share of a delay, a warning is given


@dataclass(frozen=True, slots=True)
class Crossing:
    """The measured underlay between two hosts.

    delay_ns: half the median round trip, including both kernels and tunnels; jitter_ns: a quarter of the
    distance of the round trips' quartiles; loss: share of lost round trips; rate_bps, rate_back_bps: lower
    bounds from a to b and back, from a train of full frames (the part's interpreter limits its sending rate).
    """

    a: str
    b: str
    tunnel: str
    frame_bytes: int  # size of the largest frame that passed, including the Ethernet header
    delay_ns: int
    jitter_ns: int
    loss: float
    rate_bps: int
    rate_back_bps: int


def measure(loop: Loop, plan: Plan, parts: Mapping[str, HostPart]) -> list[Crossing]:
    """Measures all pairs of hosts that a tunnel joins, each over one tunnel; raises LabError for a pair
    between which fewer than LEAST of PROBES small frames return, or fewer than two full frames arrive in a
    direction.
    """
    pairs = dict(_pairs(plan))
    if not pairs:
        return []
    numbers = {name: number for number, name in enumerate(parts)}
    devices = {name: sorted({t.device for p, t in pairs.items() if name in p}) for name in parts}
    there = {name: part for name, part in parts.items() if devices[name]}
    ask_all(loop, "listen", {
        part: {"netns": plan.core_netns, "devices": devices[name], "me": numbers[name]}
        for name, part in there.items()
    })  # fmt: skip
    probes = {
        part: _frames([(t.device, numbers[b]) for (a, b), t in pairs.items() if a == name], PROBE, PROBES,
                      PROBE_BYTES, PROBE_NS)
        for name, part in there.items()
    }  # fmt: skip
    ask_all(loop, "send", probes)
    loop.sleep_until(loop.clock.now_ns() + SETTLE_NS)
    for (a, b), tunnel in pairs.items():
        for sender, goal in ((a, b), (b, a)):
            train = _frames([(tunnel.device, numbers[goal])], TRAIN, TRAIN_FRAMES, tunnel.mtu, 0)
            ask_all(loop, "send", {parts[sender]: train})
    loop.sleep_until(loop.clock.now_ns() + SETTLE_NS)
    heard = {name: a["value"] for name, a in ask_all(loop, "heard", {p: {} for p in there.values()}).items()}
    return [_crossing(pair, tunnel, heard, numbers) for pair, tunnel in pairs.items()]


def _pairs(plan: Plan) -> Iterator[tuple[tuple[str, str], Tunnel]]:
    """Yields each pair of hosts with a tunnel between them; a pair with several tunnels comes
    once for each.
    """
    for tunnel in plan.tunnels:
        for a, b in itertools.combinations(sorted(tunnel.ends), 2):
            yield (a, b), tunnel


def _frames(to: list[tuple[str, int]], kind: int, count: int, size: int, interval_ns: int) -> dict[str, Any]:
    goals = [{"device": device, "host": host} for device, host in to]
    return {
        "to": goals, "kind": kind, "count": count if goals else 0, "size": max(size, HEAD.size),
        "interval_ns": interval_ns,
    }  # fmt: skip


def _crossing(
    pair: tuple[str, str], tunnel: Tunnel, heard: Mapping[str, Any], numbers: Mapping[str, int]
) -> Crossing:
    a, b = pair
    of_b, of_a = heard[a].get(str(numbers[b]), {}), heard[b].get(str(numbers[a]), {})
    trips = sorted(of_b.get("round_trips_ns", []))
    if len(trips) < LEAST:
        raise LabError(
            f"tunnel {tunnel.device}: {len(trips)} of {PROBES} frames came back from host {b} to host {a} "
            f"({of_a.get('probes', 0)} reached it); let UDP to port {tunnel.port} pass between them"
        )
    rates = [_rate_bps(train, tunnel.mtu + ETHERNET) for train in (of_a.get("train"), of_b.get("train"))]
    if not all(rates):
        raise LabError(
            f"tunnel {tunnel.device}: small frames pass between hosts {a} and {b}, those of {tunnel.mtu} "
            "bytes do not: the underlay takes no packets so long; raise its MTU, or write "
            "`underlay: {oversize: lower}` (and each host's `address:` where they reach each other by IPv6, "
            "whose header is longer)"
        )
    low, middle, high = statistics.quantiles(trips, n=4)
    return Crossing(
        a, b, tunnel.device, tunnel.mtu + ETHERNET, round(middle / 2), round((high - low) / 4),
        round(1 - len(trips) / PROBES, 4), rates[0], rates[1],
    )  # fmt: skip


def _rate_bps(train: list[int] | None, size: int) -> int:
    """Returns the rate of frames that were sent back to back, from their arrival times; 0 if fewer than two
    arrived.
    """
    if not train or len(train) < 2:
        return 0
    return round((len(train) - 1) * size * 8 * SECOND / max(1, train[-1] - train[0]))


def as_data(crossings: list[Crossing], clocks: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the crossings for the manifest, each with `clock_error_ns`: the sum of the errors of the two
    hosts' clocks, where an unknown one counts as 0.
    """
    return [
        {**asdict(c), "clock_error_ns": sum(int(clocks[n]["error_ns"]) for n in (c.a, c.b) if n in clocks)}
        for c in crossings
    ]


def below(plan: Plan, crossings: list[Crossing]) -> list[str]:
    """Returns a text for each link whose requested delay is less than the delay that the underlay adds to its
    frames.
    """
    return [
        f"{name} asks for {asked / 1e6:.3g} ms, and {c.a} - {c.b} adds {c.delay_ns / 1e6:.3g} ms"
        for name, asked, c in _asked(plan, crossings, lambda c: c.delay_ns)
        if asked < c.delay_ns
    ]


def doubted(plan: Plan, crossings: list[Crossing], clocks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns a text for each link whose requested delay is less than ten times the error between the clocks
    of the hosts that its frames cross.
    """
    errors = {(d["a"], d["b"]): int(d["clock_error_ns"]) for d in as_data(crossings, clocks)}
    return [
        f"{name} asks for {asked / 1e6:.3g} ms, and clocks of {c.a} and {c.b} are known to "
        f"{errors[c.a, c.b] / 1e6:.3g} ms"
        for name, asked, c in _asked(plan, crossings, lambda c: errors[c.a, c.b])
        if errors[c.a, c.b] > MATTERS * asked
    ]


def _asked(
    plan: Plan, crossings: list[Crossing], worst: Callable[[Crossing], int]
) -> Iterator[tuple[str, int, Crossing]]:
    """Yields each link that requests a delay and whose frames may cross the underlay, with two values: the
    smaller delay of its directions (ignoring 0), and the crossing of its frames with the largest `worst`.
    """
    ends = {tunnel.segment: set(tunnel.ends) for tunnel in plan.tunnels}
    for link in plan.links:
        ways = (link.forward.impairment.delay_ns, link.reverse.impairment.delay_ns)
        asked = min((delay_ns for delay_ns in ways if delay_ns), default=0)
        joined = set[str]().union(*(ends.get(name, set()) for name in _segments(link)))
        taken = [c for c in crossings if {c.a, c.b} <= joined]
        if asked and taken:
            yield link.name, asked, max(taken, key=worst)


def _segments(link: Link) -> tuple[str, str, str]:
    return link.name, link.a, link.b
