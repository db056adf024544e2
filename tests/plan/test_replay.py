"""Tests the schedule that a trace becomes: states with their times in order, and outages that end on time."""

from __future__ import annotations

import itertools
from bisect import bisect_right

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contract.plan import Band, Discipline, Impairment, State, Trace
from orchestrator.plan.replay import SHARPER, SHARPEST_NS, Moment, impairment, moments
from orchestrator.queueing import fifo

MS = 10**6
BASE = Impairment(rate_bps=10**6, limit_packets=1000, queue=fifo.of_length(1000))
MOST = 300  # number of moments that are examined; with `repeat` a trace has no end


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Draws traces of rates, many of them zero, that each last a millisecond to ten seconds."""
    lengths = draw(st.lists(st.integers(1, 10_000), min_size=1, max_size=12))
    rates = draw(st.lists(st.sampled_from([0, 0, 1000, 10**6, 10**9]), min_size=len(lengths), max_size=12))
    delays = draw(st.lists(st.integers(0, 50), min_size=len(lengths), max_size=12))
    ends = list(itertools.accumulate(lengths))
    states = tuple(
        State(at * MS, rate, delay * MS, 0.0)
        for at, rate, delay in zip([0, *ends], rates, delays, strict=False)
    )[: len(lengths)]
    repeat = draw(st.booleans())
    assume(any(s.rate_bps for s in states) if repeat else states[-1].rate_bps)
    return Trace("x", "", states, ends[-1] * MS, repeat)


@settings(deadline=None, max_examples=50)
@given(traces())
def test_every_state_comes_at_its_time_and_in_order(trace: Trace) -> None:
    found = [m for m in itertools.islice(moments(trace), MOST) if not m.again]
    for n, moment in enumerate(found):
        round_, place = divmod(n, len(trace.states))
        assert moment.state == trace.states[place]
        assert moment.at_ns == moment.state.at_ns + round_ * trace.length_ns
    if not trace.repeat:
        assert len(found) == len(trace.states)
    every = [m.at_ns for m in itertools.islice(moments(trace), MOST)]
    assert every == sorted(set(every)), "at each time one thing is asked"


@settings(deadline=None, max_examples=50)
@given(traces(), st.floats(0, 1))
def test_a_frame_of_an_outage_lasts_until_its_end(trace: Trace, share: float) -> None:
    """Shows that a frame sent at any moment of an outage takes until its end, so that the outage passes one
    frame and delays no later one.
    """
    every = list(itertools.islice(moments(trace), MOST))
    begins = [m.at_ns for m in every]
    silent = [m for m in every if m.state.rate_bps == 0]
    assume(silent)
    first = silent[int(share * (len(silent) - 1))]
    end_ns = first.at_ns + first.silent_ns
    at_ns = int(first.at_ns + share * (first.silent_ns - 1))
    active: Moment = every[bisect_right(begins, at_ns) - 1]
    assume(at_ns < begins[-1])  # the examined interval ends before the last begin
    wanted = impairment(BASE, active)
    lasts_ns = BASE.frame_bytes * 8 * 10**9 / wanted.rate_bps
    rounding_ns = lasts_ns / wanted.rate_bps  # to whole bits per second
    assert active.at_ns + active.silent_ns == end_ns
    late_ns = active.silent_ns / SHARPER + 2 * SHARPEST_NS + 1
    if active.silent_ns <= 50 * 10**9:
        assert end_ns - rounding_ns - 1 <= at_ns + lasts_ns <= end_ns + late_ns


def test_only_what_the_trace_says_is_changed() -> None:
    base = Impairment(rate_bps=5, delay_ns=7, loss=0.5, jitter_ns=3)
    assert impairment(base, Moment(0, State(0))) == base
    changed = impairment(base, Moment(0, State(0, delay_ns=9)))
    assert (changed.rate_bps, changed.delay_ns, changed.loss, changed.jitter_ns) == (5, 9, 0.5, 3)


@settings(deadline=None, max_examples=50)
@given(st.integers(10**5, 10**9), st.lists(st.integers(1, 100), min_size=2, max_size=5))
def test_classes_keep_their_shares_of_the_rate(rate_bps: int, weights: list[int]) -> None:
    """Shows that at any rate each class keeps its share, and that guaranteed rates exceed neither the
    ceilings nor, together, the rate.
    """
    whole = sum(weights) * 10**6
    classes = tuple(
        Band(f"c{n}", dscp=(n,), limit_packets=10, rate_bps=w * 10**6, ceil_bps=whole)
        for n, w in enumerate(weights)
    )
    base = Impairment(rate_bps=whole, queue=Discipline("htb", bands=classes, steered=True))
    after = impairment(base, Moment(0, State(0, rate_bps)))
    assert after.queue is not None and after.queue.steered
    shares = after.queue.bands
    assert sum(one.rate_bps for one in shares) <= rate_bps == after.rate_bps
    for one, before in zip(shares, classes, strict=True):
        assert one.rate_bps <= one.ceil_bps <= rate_bps
        assert abs(one.rate_bps - before.rate_bps / whole * rate_bps) < 1
