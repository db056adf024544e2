"""Tests that no message of a random small network, simulated packet by packet, comes later than its bound.

The simulation is independent of the analysis: it uses queues and packets, and no curves.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan.bounds.analysis import analyse
from orchestrator.plan.bounds.network import Hop, Server, Stream

PACKETS = 12  # packets of each stream


@dataclass(frozen=True)
class Packet:
    stream: int
    released_s: float


def simulate(servers: Sequence[Server], streams: Sequence[Stream], starts: Sequence[float]) -> list[float]:
    """Returns the longest delay of each stream: store and forward, one packet on each wire, without
    preemption.

    The servers form a chain: each is simulated completely before the next, whose arrivals are then known.
    """
    at: dict[str, list[tuple[float, int, Packet]]] = {server.name: [] for server in servers}
    number = 0
    for index, (stream, start) in enumerate(zip(streams, starts, strict=True)):
        for tick in range(PACKETS):
            for _ in range(int(stream.burst)):
                released = start + tick * stream.burst / stream.per_s
                at[stream.hops[0].server].append((released, number, Packet(index, released)))
                number += 1
    longest = [0.0] * len(streams)
    for server in servers:
        serve = _serve_by_credit if server.order == "credit" else _serve
        for left, order, packet in serve(server, streams, sorted(at[server.name])):
            hops = [hop.server for hop in streams[packet.stream].hops]
            place = hops.index(server.name)
            if place + 1 < len(hops):
                at[hops[place + 1]].append((left, order, packet))
            else:
                longest[packet.stream] = max(longest[packet.stream], left - packet.released_s)
    return longest


def _serve(
    server: Server, streams: Sequence[Stream], arriving: list[tuple[float, int, Packet]]
) -> list[tuple[float, int, Packet]]:
    waiting: list[tuple[int, float, int, Packet]] = []
    left, now, turn = list[tuple[float, int, Packet]](), 0.0, 0
    while waiting or turn < len(arriving):
        if not waiting:
            now = max(now, arriving[turn][0])
        while turn < len(arriving) and arriving[turn][0] <= now:
            came, order, packet = arriving[turn]
            hop = next(h for h in streams[packet.stream].hops if h.server == server.name)
            heapq.heappush(waiting, (hop.band if server.order == "priority" else 0, came, order, packet))
            turn += 1
        _, _, order, packet = heapq.heappop(waiting)
        hop = next(h for h in streams[packet.stream].hops if h.server == server.name)
        now += hop.bits / server.bps
        left.append((now + server.delay_s, order, packet))
    return left


class Shaped:
    """The bands of a link by IEEE 802.1Qav: what waits in each, and the credits of those with a slope."""

    def __init__(self, server: Server) -> None:
        self.bps, self.slopes = server.bps, server.guarantees_bps
        self.waiting: list[list[tuple[float, int, Packet]]] = [[] for _ in self.slopes]
        self.credits = [0.0] * len(self.slopes)

    def pass_time(self, seconds: float, sending: int | None) -> None:
        for band, slope in enumerate(self.slopes):
            if band == sending:
                self.credits[band] -= (self.bps - slope) * seconds
            elif self.waiting[band]:
                self.credits[band] += slope * seconds
            else:
                self.credits[band] = min(0.0, self.credits[band] + slope * seconds)

    def next_band(self) -> int | None:
        ready = (
            band for band, slope in enumerate(self.slopes)
            if self.waiting[band] and (not slope or self.credits[band] >= -1e-9)
        )  # fmt: skip
        return next(ready, None)

    def until_credit_s(self) -> float:
        return min(
            (
                -self.credits[band] / slope
                for band, slope in enumerate(self.slopes)
                if slope and self.waiting[band]
            ),
            default=float("inf"),
        )


def _serve_by_credit(
    server: Server, streams: Sequence[Stream], arriving: list[tuple[float, int, Packet]]
) -> list[tuple[float, int, Packet]]:
    """Simulates credit-based shapers: credit grows while a band waits or owes, and falls while it sends."""
    link, left, now, turn = Shaped(server), list[tuple[float, int, Packet]](), 0.0, 0

    def advance(until: float, sending: int | None) -> None:
        nonlocal now, turn
        while turn < len(arriving) and arriving[turn][0] <= until:
            link.pass_time(max(0.0, arriving[turn][0] - now), sending)
            now = max(now, arriving[turn][0])
            hop = next(h for h in streams[arriving[turn][2].stream].hops if h.server == server.name)
            link.waiting[hop.band].append(arriving[turn])
            turn += 1
        link.pass_time(until - now, sending)
        now = until

    while turn < len(arriving) or any(link.waiting):
        band = link.next_band()
        if band is None:
            arrival = arriving[turn][0] if turn < len(arriving) else float("inf")
            advance(max(now, min(arrival, now + link.until_credit_s())), None)
            continue
        _, order, packet = link.waiting[band].pop(0)
        hop = next(h for h in streams[packet.stream].hops if h.server == server.name)
        advance(now + hop.bits / server.bps, band)
        if not link.waiting[band]:
            link.credits[band] = min(0.0, link.credits[band])
        left.append((now + server.delay_s, order, packet))
    return left


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Server], list[Stream], list[float]]:
    """Draws servers in a row, and streams that each pass some consecutive servers, with their starts."""
    count = draw(st.integers(1, 4))
    orders = st.sampled_from(["fifo", "priority", "credit"])
    servers = [
        Server(
            f"s{i}",
            bps := draw(st.integers(1_000, 10_000)) * 1.0,
            draw(st.integers(0, 3)) / 10,
            order=draw(orders),  # type: ignore[arg-type]  # hypothesis knows no literals
            frame_bits=1_000.0,
            line_bps=bps,
            line_bits=1_000.0,
            guarantees_bps=(bps * draw(st.integers(1, 5)) / 10, bps * draw(st.integers(0, 4)) / 10, 0.0),
        )
        for i in range(count)
    ]
    streams, starts = [], []
    for index in range(draw(st.integers(1, 5))):
        first = draw(st.integers(0, count - 1))
        last = draw(st.integers(first, count - 1))
        bits, band = draw(st.integers(50, 1_000)), draw(st.integers(0, 2))
        hops = tuple(Hop(f"s{i}", float(bits), band) for i in range(first, last + 1))
        burst = draw(st.integers(1, 3))
        per_s = draw(st.integers(1, 12)) * 0.25
        streams.append(Stream(f"f{index}", f"f{index}", hops, float(burst), per_s))
        starts.append(draw(st.integers(0, 40)) / 10)
    return servers, streams, starts


@settings(max_examples=300, deadline=None, derandomize=True)
@given(networks())
def test_no_packet_of_a_simulated_network_exceeds_its_bound(
    network: tuple[list[Server], list[Stream], list[float]],
) -> None:
    servers, streams, starts = network
    bounds = analyse(servers, streams)
    for bound, measured in zip(bounds, simulate(servers, streams, starts), strict=True):
        assert bound.worst_s is None or measured <= bound.worst_s + 1e-9
        assert bound.least_s <= measured + 1e-9


def test_the_oracle_reaches_the_bound_of_one_queue() -> None:
    """Shows that the simulation reaches the bound if all messages arrive at once in one FIFO queue: the last
    waits for all others.
    """
    server = Server("s0", 1_000.0)
    streams = [Stream(name, name, (Hop("s0", 500.0),), 1.0, 0.01) for name in "abc"]
    (*_, last) = simulate([server], streams, [0.0, 0.0, 0.0])
    assert last == 1.5 == analyse([server], streams)[2].worst_s


def test_the_oracle_of_credit_spaces_a_burst_by_its_slope() -> None:
    """Shows that the simulation is one of IEEE 802.1Qav: a burst of three leaves one length over the slope
    apart, and a class without a slope passes in the gaps.
    """
    server = Server("s0", 1_000.0, order="credit", frame_bits=500.0, guarantees_bps=(300.0, 0.0))
    shaped = Stream("a", "a", (Hop("s0", 500.0, 0),), 3.0, 0.01)
    rest = Stream("b", "b", (Hop("s0", 500.0, 1),), 1.0, 0.01)
    last, other = simulate([server], [shaped, rest], [0.0, 0.0])
    assert abs(last - (2 * 500 / 300 + 0.5)) < 1e-9
    assert other == 1.0
    # a lower frame, the three at the slope, and what rounding of credit costs (16 bits of each frame)
    first = analyse([server], [shaped])[0].worst_s
    assert first is not None and 0.5 + 3 * 500 / 300 <= first < 0.5 + 3 * 500 / 300 + 0.7
