"""Tests bounds against those that other tools publish for their own example networks.

Saihu (EPFL), example/demo.json with its report: total flow analysis by Panco (without grouping) and xTFA
(with grouping by the links' capacity). DiscoDNC, its functional tests FF_3S_1SC_2F_1AC_2P,
FF_4S_1SC_3F_1AC_3P and TR_7S_1SC_3F_1AC_3P: total flow analysis, FIFO.
"""

from __future__ import annotations

import pytest

from orchestrator.plan.bounds.analysis import analyse
from orchestrator.plan.bounds.network import Hop, Server, Stream

US, MBIT = 1e-6, 1e6


def rate_latency(name: str, bps: float, latency_s: float, line_bps: float = 0.0) -> Server:
    """Returns a server with the service curve bps * (t - latency)."""
    return Server(
        name, bps, order="guarantee", frame_bits=latency_s * bps, guarantees_bps=(bps,), line_bps=line_bps
    )


def bucket(name: str, path: list[str], bits: float, bps: float) -> Stream:
    return Stream(name, name, tuple(Hop(server, bits) for server in path), 1.0, bps / bits)


DEMO = {"f0": ["s0-o0", "s1-o0"], "f1": ["s0-o0", "s1-o1"], "f2": ["s1-o0"]}
PUBLISHED_US = {  # per flow, in us, to three decimals
    "Panco-TFA": (0.0, {"f0": 100.125, "f1": 80.125, "f2": 50.125}),
    "xTFA-TFA": (100 * MBIT, {"f0": 99.324, "f1": 79.322, "f2": 49.324}),
}


@pytest.mark.parametrize("tool", PUBLISHED_US)
def test_the_bounds_are_those_that_saihu_reports_for_its_demo(tool: str) -> None:
    line_bps, wanted = PUBLISHED_US[tool]
    servers = [rate_latency(name, 4 * MBIT, 10 * US, line_bps) for name in ("s0-o0", "s1-o0", "s1-o1")]
    found = analyse(servers, [bucket(name, path, 80.0, 10e3) for name, path in DEMO.items()])
    got = {one.stream.name: one.worst_s for one in found}
    assert got == {name: pytest.approx(us * US, abs=0.0006 * US) for name, us in wanted.items()}


DNC = {  # paths, and the published bound of each flow
    "FF_3S": {"f0": ("02", 485 / 8), "f1": ("012", 1395 / 16)},
    "FF_4S": {"f0": ("013", 5985 / 64), "f1": ("23", 3965 / 64), "f2": ("21", 885 / 16)},
    "TR_7S": {"f0": ("1256", 395 / 2), "f1": ("01256", 875 / 4), "f2": ("3456", 180.0)},
}


@pytest.mark.parametrize("network", DNC)
def test_the_bounds_are_above_those_of_dnc_by_less_than_a_twentieth_or_in_a_tree_a_half(network: str) -> None:
    """DNC bounds what leaves a server by the service that the others leave to the flow, and takes flows with
    a common path as one. Here a burst grows by the whole spread of the delays, at each server again.
    """
    most = 1.5 if network == "TR_7S" else 1.05
    flows = DNC[network]
    servers = [rate_latency(str(number), 20.0, 20.0) for number in range(7)]
    found = analyse(servers, [bucket(name, [*path], 25.0, 5.0) for name, (path, _) in flows.items()])
    for bound in found:
        published = flows[bound.stream.name][1]
        assert bound.worst_s is not None and published <= bound.worst_s < most * published


def test_grouping_counts_bursts_over_one_link_one_after_the_other() -> None:
    """Compares with a value computed by hand: two bursts of 1,000 bits over a link of 1,000 bit/s, whose
    frames have 100 bits, come to a server of 2,000 bit/s, and never wait for more than a frame.
    """
    first = Server("a", 1_000.0, frame_bits=100.0, line_bps=1_000.0, line_bits=100.0)
    streams = [bucket(name, ["a", "b"], 1_000.0, 1.0) for name in "xy"]
    grouped, *_ = analyse([first, Server("b", 2_000.0)], streams)
    assert grouped.parts[1][1] == pytest.approx(100 / 2_000)
    alone, *_ = analyse([Server("a", 1_000.0), Server("b", 2_000.0)], streams)
    assert alone.parts[1][1] == pytest.approx((2_000 + 2 * 2.0) / 2_000, rel=1e-3)


def test_answers_do_not_come_at_the_rate_of_the_link_before() -> None:
    """Shows that long answers to short requests, which a node sends at once, wait for one another."""
    first = Server("there", 1_000.0, line_bps=1_000.0, line_bits=100.0)
    back = Server("back", 1_000.0)
    asked = Stream("ask", "ask", (Hop("there", 100.0), Hop("back", 2_000.0, answers=True)), 5.0, 0.01)
    (bound,) = analyse([first, back], [asked])
    assert bound.parts[1][1] >= 5 * 2_000 / 1_000
