"""Tests arrival and service curves and the analysis on examples of Le Boudec and Thiran, Network Calculus
(LNCS 2050).
"""

from __future__ import annotations

import math

import pytest

from orchestrator.plan.bounds.analysis import analyse
from orchestrator.plan.bounds.curves import Bucket, RateLatency, after_priority, busy_s
from orchestrator.plan.bounds.network import Hop, Server, Stream


def test_a_leaky_bucket_at_a_rate_latency_server_is_section_1_4_1() -> None:
    """Shows that the delay bound is T + b/R and the output curve (r, b + rT)."""
    arrivals, server = Bucket(1000.0, 100.0), RateLatency(500.0, 2.0)
    assert server.delay_s(arrivals) == 2.0 + 1000 / 500
    assert server.output(arrivals) == Bucket(1200.0, 100.0)


def test_two_servers_one_by_one_are_section_1_4_3() -> None:
    """Shows that the bounds of two servers, each analysed alone, add up to b/R1 + (b + r T1)/R2 + T1 + T2;
    "pay bursts only once" gives a smaller bound.
    """
    b, r, first, second = 900.0, 50.0, RateLatency(300.0, 1.0), RateLatency(150.0, 2.0)
    behind = first.output(Bucket(b, r))
    total = first.delay_s(Bucket(b, r)) + second.delay_s(behind)
    assert total == pytest.approx(b / 300 + (b + r * 1) / 150 + 1 + 2)


def test_priority_is_proposition_1_3_4() -> None:
    """Shows that the first class gets rate C and latency l/C, and the second rate C - r and latency b/(C -
    r).
    """
    assert after_priority(1e6, Bucket(), 12_000) == RateLatency(1e6, 0.012)
    assert after_priority(1e6, Bucket(5_000, 2e5), 0) == RateLatency(8e5, 5_000 / 8e5)
    assert math.isinf(after_priority(1e6, Bucket(1, 1e6), 0).delay_s(Bucket(1, 1)))


def test_an_unstable_server_has_no_bound() -> None:
    assert math.isinf(RateLatency(10.0).delay_s(Bucket(1.0, 10.0)))
    assert math.isinf(busy_s(10.0, Bucket(1.0, 10.0)))
    assert busy_s(10.0, Bucket(6.0, 4.0)) == 1.0


def test_the_drop_links_of_a_substation_take_what_is_printed() -> None:
    """Shows that a frame of 168 bytes, with preamble and checksum, takes 134.4 us at 10 Mbit/s and 13.44 us
    at 100 Mbit/s, as the paper prints.
    """
    ways = [Server("drop", 10e6), Server("switch", 100e6)]
    (bound,) = analyse(ways, [_stream("message", "drop", "switch", bits=168 * 8)])
    assert bound.parts[0][1] == pytest.approx(134.4e-6)
    assert bound.worst_s == pytest.approx(134.4e-6 + 13.44e-6)


def _stream(name: str, *at: str, bits: float = 1000.0, per_s: float = 0.0, band: int = 0) -> Stream:
    return Stream(name, name, tuple(Hop(server, bits, band) for server in at), 1.0, per_s)


def test_an_unstable_link_is_named_and_others_keep_their_bounds() -> None:
    servers = [Server("full", 1e3), Server("free", 1e6)]
    full, free = analyse(servers, [_stream("a", "full", per_s=2.0), _stream("b", "free", per_s=2.0)])
    assert full.worst_s is None and full.why.startswith("full: ") and "200 %: unstable" in full.why
    assert free.worst_s is not None


def test_a_cycle_is_said_and_what_it_does_not_feed_keeps_its_bound() -> None:
    servers = [Server(name, 1e6) for name in "abcd"]
    round_about = [_stream("one", "a", "b"), _stream("two", "b", "c"), _stream("three", "c", "a", "d")]
    cyclic = analyse(servers, round_about)
    assert all(bound.worst_s is None and "(a cycle)" in bound.why for bound in cyclic)
    *_, apart = analyse([*servers, Server("e", 1e6)], [*round_about, _stream("apart", "e")])
    assert apart.worst_s == pytest.approx(1e-3)


def test_a_source_counts_once_where_its_streams_meet() -> None:
    server = Server("s", 1e6)
    copies = [Stream(name, "source", (Hop("s", 1000.0),), 1.0, 10.0) for name in "ab"]
    apart = [Stream(name, name, (Hop("s", 1000.0),), 1.0, 10.0) for name in "ab"]
    assert analyse([server], copies)[0].worst_s == pytest.approx(1e-3)
    assert analyse([server], apart)[0].worst_s == pytest.approx(2e-3)


def test_jitter_before_the_rate_makes_bursts_larger() -> None:
    server = Server("s", 1e6, delay_s=5e-3, jitter_s=1e-3)
    (bound,) = analyse([server], [_stream("a", "s", per_s=100.0)])
    assert bound.least_s == pytest.approx(4e-3)
    assert bound.worst_s == pytest.approx(6e-3 + (1000 + 100_000 * 2e-3) / 1e6)


def test_what_has_no_curve_spoils_its_own_class_and_those_behind_it() -> None:
    server = Server("s", 1e6, order="priority", frame_bits=12_000)
    greedy = Stream("greedy", "greedy", (Hop("s", 0.0, 1),), unknown="it is greedy")
    first, same, _ = analyse([server], [_stream("first", "s"), _stream("same", "s", band=1), greedy])
    assert first.worst_s == pytest.approx(13e-3)
    assert same.worst_s is None and "greedy, which has no bound" in same.why
