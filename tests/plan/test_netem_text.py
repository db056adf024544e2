"""Tests netem's arguments and queue limits, and that the machine's own tc accepts them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.plan import Impairment
from orchestrator import queueing
from orchestrator.plan.netem import queue_limit, sized
from orchestrator.queueing.netem import text as netem_text
from orchestrator.topology.checks.impairments import LONGEST_DELAY_NS

MS = 10**6


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Impairment(delay_ns=10 * MS), "netem limit 97657 delay 10ms"),
        (
            Impairment(delay_ns=1_500_000, jitter_ns=1000, rate_bps=10**6),
            "netem limit 1000 delay 1500us 1us rate 1mbit",
        ),
        (
            Impairment(delay_ns=30 * MS, jitter_ns=5 * MS, loss=0.3, rate_bps=250_000),
            "netem limit 1000 delay 30ms 5ms loss random 30% rate 250kbit",
        ),
        (
            Impairment(
                delay_ns=20 * MS, jitter_ns=2 * MS, distribution="normal", delay_correlation=0.25, rate_bps=1
            ),
            "netem limit 1000 delay 20ms 2ms 25% distribution normal rate 1bit",
        ),
        (Impairment(loss=0.005, loss_correlation=0.1), "netem limit 1000 loss random 0.5% 10%"),
        (Impairment(gemodel=(0.01, 0.3, 0.6, 0.001)), "netem limit 1000 loss gemodel 1% 30% 60% 0.1%"),
        (Impairment(duplicate=0.01, corrupt=0.002), "netem limit 1000 duplicate 1% corrupt 0.2%"),
        (
            Impairment(delay_ns=MS, rate_bps=10**6, reorder=0.05, reorder_correlation=0.5),
            "netem limit 1000 delay 1ms reorder 5% 50% rate 1mbit",
        ),
    ],
)
def test_text(wanted: Impairment, text: str) -> None:
    assert netem_text(sized(wanted)) == text


def test_the_limit_follows_rate_and_delay() -> None:
    # 1 Gbit/s for 10 ms are 1.25 MB; twice that, in packets of 256 bytes, is 9766 packets.
    assert queue_limit(10 * MS, 0, 10**9) == 9766
    assert queue_limit(10 * MS, MS, 10**9) == 13672
    assert queue_limit(0, 0, 10**9) == 1000
    assert queue_limit(30 * MS, 5 * MS, 250_000) == 1000
    assert queue_limit(10 * MS, 0, 0) == queue_limit(10 * MS, 0, 10**10)


@given(st.integers(0, 10**10), st.integers(0, 10**9), st.integers(1, 10**11))
def test_the_limit_holds_more_than_the_path_does(delay: int, jitter: int, rate: int) -> None:
    limit = queue_limit(delay, jitter, rate)
    assert limit >= 1000
    assert limit * 256 * 8 >= rate * (delay + jitter) / 1e9


def test_a_plain_wire_has_no_limit_and_is_not_present() -> None:
    assert sized(Impairment()) == Impairment()
    assert not Impairment(limit_packets=5).present
    assert sized(Impairment(loss=0.1), 77).limit_packets == 77


@pytest.mark.skipif(shutil.which("tc") is None, reason="tc (iproute2) is not installed")
def test_tc_reads_every_line() -> None:
    """Shows that tc parses every line: it does so before it looks for the device, so an invalid line gives
    another message.
    """
    everything = [
        Impairment(
            delay_ns=20 * MS, jitter_ns=2 * MS, distribution=shape, delay_correlation=0.25, rate_bps=10**7
        )
        for shape in ("uniform", "normal", "pareto", "paretonormal")
    ]
    everything += [
        Impairment(gemodel=(0.01, 0.3, 0.6, 0.001), duplicate=0.01, duplicate_correlation=0.1, corrupt=0.02),
        Impairment(
            delay_ns=1000,
            loss=1 / 3,
            loss_correlation=0.5,
            reorder=0.05,
            reorder_correlation=0.5,
            corrupt=0.1,
        ),
        Impairment(delay_ns=LONGEST_DELAY_NS, corrupt=0.1, corrupt_correlation=0.2, rate_bps=123_456_789),
    ]
    for wanted in everything:
        line = queueing.set_text("no-such-device", sized(wanted)).splitlines()[0]
        done = subprocess.run(["tc", "-batch", "-"], input=line, capture_output=True, text=True, check=False)
        assert 'Cannot find device "no-such-device"' in done.stderr, line + "\n" + done.stderr
    wrong = "qdisc replace dev no-such-device root netem delay 10parsec"
    done = subprocess.run(["tc", "-batch", "-"], input=wrong, capture_output=True, text=True, check=False)
    assert 'Illegal "latency"' in done.stderr, "tc does not read before it looks, so this test shows nothing"
