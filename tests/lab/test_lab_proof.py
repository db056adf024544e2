"""Tests the judgement of links: values that hold, values that fail, and values for which there are too few
frames.
"""

from __future__ import annotations

import bisect
import dataclasses
import random
import statistics
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lab_plans import MS, access, node

from contract.plan import Impairment
from contract.plan.tolerance import ProofSettings, Tolerance
from contract.proof import Proven
from orchestrator.lab import expected, judge, probes, train
from orchestrator.lab.intervals import mean_interval, normal_quantile, wilson, z_for
from orchestrator.lab.judgement import Seen, shown
from orchestrator.lab.tolerance import HOST, VIRTUAL, WIDEST, Noise, Tolerances, settle

PLAIN = Impairment()


def verdicts(asked: Impairment, seen: Seen, burst: Seen | None = None) -> dict[str, str]:
    return {quantity: line.verdict for quantity, line in judged(asked, seen, burst).items()}


def judged(
    asked: Impairment,
    seen: Seen,
    burst: Seen | None = None,
    tolerances: Tolerances = HOST,
    noise: Noise | None = None,
) -> dict[str, Proven]:
    link = access("p", "wire", node("p", 0, "alpha"), asked, PLAIN)
    quiet = Seen(5, 5, 0, 0, [0] * 5, range(5))
    spaced = {("wire", "forward"): seen, ("wire", "reverse"): quiet}
    found = judge.judge([link], spaced, {("wire", "forward"): burst} if burst else {}, tolerances, noise)
    return {j.quantity: j for j in found if j.direction == "forward"}


def frames(count: int, delay_ns: float, jitter_ns: float, loss: float = 0.0, seed: int = 1) -> Seen:
    """Returns the delays of `count` frames over a link with even jitter and loss."""
    draw = random.Random(seed)
    kept = [n for n in range(count) if draw.random() >= loss]
    delays = [round(delay_ns + draw.uniform(-jitter_ns, jitter_ns)) for _ in kept]
    return Seen(count, len(kept), 0, 0, delays, [n * MS + d for n, d in zip(kept, delays, strict=True)])


def test_a_link_that_does_what_was_asked_holds() -> None:
    asked = Impairment(delay_ns=20 * MS, jitter_ns=4 * MS, loss=0.05, limit_packets=1000)
    assert verdicts(asked, frames(12_000, 20.1 * MS, 4 * MS, 0.05)) == dict.fromkeys(
        ("reach", "delay", "jitter", "loss"), "holds"
    )


def test_netem_takes_whole_nanoseconds_for_a_frame() -> None:
    """Shows that the expected rate allows for netem's whole nanoseconds per frame: 127 bytes at 10 Gbit/s
    pass at 10.06 Gbit/s.
    """
    tiny = Impairment(rate_bps=10**10, limit_packets=1000, frame_bytes=131)
    assert probes.train_size(tiny) == 127 and expected.rate_bps(tiny) == pytest.approx(127 * 8e9 / 101)
    assert expected.rate_bps(Impairment(rate_bps=10**9, limit_packets=1000)) == 10**9
    shaped = dataclasses.replace(tiny, backpressure=True)
    assert expected.rate_bps(shaped) == 10**10, "tbf reckons in finer steps"


@pytest.mark.parametrize("shape", ["normal", "pareto", "paretonormal"])
def test_what_iproute2s_tables_make_of_a_jitter(shape: str) -> None:
    """Shows that the expected jitter follows iproute2's tables: that of `pareto` ends at four times the
    jitter, so its standard deviation is 0.82 of the request.
    """
    found = sorted(Path("/usr/lib").glob(f"*/tc/{shape}.dist")) + sorted(
        Path("/usr/lib/tc").glob(f"{shape}.dist")
    )
    if not found:
        pytest.skip("no iproute2 with tables on this machine")
    lines = found[0].read_text().splitlines()
    table = [int(word) / 8192 for line in lines if not line.startswith("#") for word in line.split()]
    asked = Impairment(delay_ns=40 * MS, jitter_ns=4 * MS, distribution=shape, limit_packets=1000)
    mean, deviation = statistics.fmean(table) * 4 * MS, statistics.pstdev(table) * 4 * MS
    assert expected.mean_ns(asked) == pytest.approx(40 * MS + mean, abs=0.001 * MS)
    assert expected.jitter_ns(asked) == pytest.approx(deviation, rel=0.001)
    draw = random.Random(1)
    delays = [round(40 * MS + 4 * MS * draw.choice(table)) for _ in range(60_000)]
    lines_of = judged(asked, Seen(60_000, 60_000, 0, 0, delays, delays), tolerances=VIRTUAL)
    assert {lines_of[quantity].verdict for quantity in ("delay", "jitter")} == {"holds"}


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (frames(1000, 25 * MS, 4 * MS, 0.05), "delay"),
        (frames(1000, 20 * MS, 8 * MS, 0.05), "jitter"),
        (frames(1000, 20 * MS, 4 * MS, 0.15), "loss"),
        (frames(1000, 20 * MS, 4 * MS, 0.0), "loss"),
    ],
)
def test_each_wrong_quantity_fails_alone(seen: Seen, wrong: str) -> None:
    asked = Impairment(delay_ns=20 * MS, jitter_ns=4 * MS, loss=0.05, limit_packets=1000)
    failed = [q for q, v in verdicts(asked, seen).items() if v == "fails"]
    assert failed == [wrong]


@pytest.mark.parametrize(("late", "within"), [(5, HOST), (50, HOST.rough())])
def test_frames_that_came_late_now_and_then_do_not_spoil_the_jitter(late: int, within: Tolerances) -> None:
    """Shows that the jitter holds although up to one frame in 20 is late, which moves the quartiles 5 %
    apart.
    """
    asked = Impairment(delay_ns=20 * MS, jitter_ns=4 * MS, limit_packets=1000)
    seen = frames(8000, 20 * MS, 4 * MS)
    delays = [d + (30 * MS if n % (1000 // late) == 0 else 0) for n, d in enumerate(seen.delays_ns)]
    found = judged(asked, dataclasses.replace(seen, delays_ns=delays), tolerances=within)
    assert found["jitter"].verdict == "holds"


def test_few_frames_cannot_tell() -> None:
    asked = Impairment(delay_ns=20 * MS, jitter_ns=4 * MS, loss=0.01, limit_packets=1000)
    found = verdicts(asked, frames(10, 20 * MS, 4 * MS))
    assert (found["jitter"], found["loss"]) == ("cannot tell", "cannot tell")
    assert verdicts(asked, frames(200, 20 * MS, 4 * MS))["loss"] == "cannot tell", (
        "0 of 200 fits 1 %, and 0 %"
    )


def test_a_link_that_is_to_lose_everything_is_judged_by_its_loss_alone() -> None:
    """Shows that a link with 100 % loss is judged by its loss only, so that the lack of frames is
    no failure.
    """
    asked = Impairment(delay_ns=20 * MS, loss=1.0)
    assert verdicts(asked, frames(200, 0, 0, loss=1.0)) == {"loss": "holds"}
    assert verdicts(asked, frames(200, 20 * MS, 0)) == {"loss": "fails"}


def test_a_plain_wire_may_lose_nothing() -> None:
    whole, hole = Seen(5, 5, 0, 0, [0] * 5, range(5)), Seen(5, 4, 0, 0, [0] * 4, range(4))
    assert verdicts(PLAIN, whole) == {"reach": "holds"}
    assert verdicts(PLAIN, hole) == {"reach": "fails"}


def burst(
    asked: Impairment,
    rate_bps: float,
    offered_bps: float = 10e9,
    count: int = 0,
    late_ns: float = 0,
    seed: int = 1,
) -> Seen:
    """Returns the arrival times of a train of frames as netem sends them (sch_netem.c): each frame when its
    delay is over and the previous frame has left.
    """
    draw, size = random.Random(seed), probes.train_size(asked)
    spacing, sent, due = size * 8e9 / rate_bps, 0.0, 0.0
    delays: list[int] = []
    arrivals: list[int] = []
    gone: list[float] = []
    link = access("p", "wire", node("p", 0, "alpha"), asked, PLAIN)
    count = count or probes.burst_probes([link])[0]["count"]
    for _ in range(count):
        sent += size * 8e9 / offered_bps
        if len(gone) - bisect.bisect(gone, sent) >= asked.limit_packets:
            continue  # the queue is full, so netem drops the frame
        due = max(due, sent + asked.delay_ns + draw.uniform(-1, 1) * asked.jitter_ns) + spacing
        gone.append(due)
        arrivals.append(round(due + draw.uniform(0, late_ns)))
        delays.append(arrivals[-1] - round(sent))
    return Seen(count, len(arrivals), 0, 0, delays, arrivals)


def test_the_rate_is_judged_only_where_more_was_offered() -> None:
    asked = Impairment(rate_bps=1_000_000, delay_ns=MS, limit_packets=1000)
    spaced = frames(100, MS, 0)
    assert verdicts(asked, spaced, burst(asked, 1.009e6))["rate"] == "holds"
    assert verdicts(asked, spaced, burst(asked, 1.02e6))["rate"] == "fails"
    assert verdicts(asked, spaced, burst(asked, 2e6))["rate"] == "fails"
    assert verdicts(asked, spaced, burst(asked, 1e6, offered_bps=1e6))["rate"] == "cannot tell"
    assert verdicts(asked, spaced)["rate"] == "cannot tell"


def test_jitter_does_not_hide_a_gigabit() -> None:
    """Shows that the rate of 1 Gbit/s is measured to 0.6 % behind a jitter of 1 ms, with a train of more than
    1,000 frames.
    """
    asked = Impairment(delay_ns=10 * MS, jitter_ns=MS, rate_bps=10**9, limit_packets=13_672)
    spaced = frames(1000, 10 * MS, MS)
    for rate, verdict in ((1e9, "holds"), (1.006e9, "fails"), (0.99e9, "fails")):
        line = judged(asked, spaced, burst(asked, rate), VIRTUAL)["rate"]
        assert line.verdict == verdict and line.n > 1000
        assert line.low is not None and line.high is not None and line.high / line.low < 1.001


def without(train: Seen, share: float, seed: int = 1) -> Seen:
    """Returns the train with the given share of its frames damaged: they take their time on the link, but
    their arrivals are unknown.
    """
    draw = random.Random(seed)
    kept = [n for n in range(len(train.arrivals_ns)) if draw.random() >= share]
    hidden = len(train.arrivals_ns) - len(kept)
    delays, arrivals = ([values[n] for n in kept] for values in (train.delays_ns, train.arrivals_ns))
    return Seen(train.sent, train.received, 0, hidden, delays, arrivals)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("rate", [10**6, 20_000_000, 10**9])
def test_damaged_frames_leave_holes_that_are_counted(rate: int, share: float) -> None:
    """Shows that the rate is judged right although frames are damaged, because their number follows from the
    gaps they leave.
    """
    asked = Impairment(delay_ns=10 * MS, rate_bps=rate, corrupt=share, limit_packets=13_672)
    whole = burst(asked, rate, offered_bps=10 * rate, late_ns=256)
    line = judged(asked, frames(1000, 10 * MS, 0), without(whole, share), VIRTUAL)["rate"]
    assert line.verdict == "holds" and line.low is not None and line.high is not None
    wrong = burst(asked, 1.006 * rate, offered_bps=10 * rate, late_ns=256)
    assert judged(asked, frames(1000, 10 * MS, 0), without(wrong, share), VIRTUAL)["rate"].verdict == "fails"


def test_holes_that_cannot_be_seen_widen_the_interval() -> None:
    """Shows that arrivals that are late by more than a frame's time widen the interval, because the missing
    frames can then only be estimated.
    """
    asked = Impairment(delay_ns=10 * MS, rate_bps=10**9, corrupt=0.1, limit_packets=13_672)
    late = without(burst(asked, 1e9, late_ns=20_000), 0.1)
    told = train.measured(asked, late)
    assert isinstance(told, train.Realised) and told.error > 0.02
    assert abs(told.rate_bps / 1e9 - 1) < told.error


def test_a_queue_of_a_tenth_of_a_millisecond_tells_its_rate() -> None:
    """Shows that a queue of 1,000 frames of 127 bytes at 10 Gbit/s, with arrivals known to 256 ns, is judged
    with a longer train.
    """
    asked = Impairment(rate_bps=10**10, limit_packets=1000, frame_bytes=131)
    link = access("p", "wire", node("p", 0, "alpha"), asked, PLAIN)
    (probe,) = probes.burst_probes([link])
    assert probe["count"] > 10 * asked.limit_packets and 0 < probe["interval_ns"] < 101 / 1.1
    rate = expected.rate_bps(asked)
    seen = burst(asked, rate, offered_bps=1.15 * rate, late_ns=256)
    assert judged(asked, frames(100, 0, 0), seen, VIRTUAL)["rate"].verdict == "holds"
    fast = burst(asked, 1.007 * rate, offered_bps=1.15 * rate, late_ns=256)
    assert judged(asked, frames(100, 0, 0), fast, VIRTUAL)["rate"].verdict == "fails"


def test_a_queue_that_is_shorter_than_the_jitter_says_so() -> None:
    asked = Impairment(delay_ns=10 * MS, jitter_ns=5 * MS, rate_bps=10**9, limit_packets=20)
    line = judged(asked, frames(1000, 10 * MS, 5 * MS), burst(asked, 1e9))["rate"]
    assert line.verdict == "cannot tell" and "a longer one (`limit`) shows it" in line.reason


@settings(deadline=None)
# the queue is hardly longer than the delay
@example(rate=2_238_496_080, delay=268_738, part=0, limit=51, seed=0)
@given(
    st.integers(10_000, 10**10),
    st.integers(0, 20 * MS),
    st.integers(0, 3),
    st.integers(50, 5000),
    st.integers(0, 99),
)
def test_the_bound_of_a_trains_error_holds(rate: int, delay: int, part: int, limit: int, seed: int) -> None:
    """Shows for any rate, jitter and queue that a reported rate is wrong by at most its bound."""
    asked = Impairment(delay_ns=delay, jitter_ns=delay * part // 3, rate_bps=rate, limit_packets=limit)
    told = train.measured(asked, burst(asked, rate, offered_bps=1.5 * rate, late_ns=20_000, seed=seed))
    if isinstance(told, train.Realised):
        assert abs(told.rate_bps / rate - 1) <= told.error + 1e-4


def test_the_tolerance_is_the_files_else_the_kernels() -> None:
    nothing = ProofSettings()
    assert settle(nothing, kernel="uml", virtual=True, quiet=None) == VIRTUAL
    assert settle(nothing, kernel="host", virtual=False, quiet=None) == HOST
    assert settle(nothing, kernel="uml", virtual=False, quiet=None) == WIDEST
    for added, amount in ((1e3, 0.2 * MS), (0.4 * MS, 0.4 * MS), (50 * MS, MS)):
        found = settle(nothing, kernel="uml", virtual=False, quiet=Noise(added, added, added))
        assert found.delay == Tolerance(amount, 0.01) and found.jitter.amount == min(amount, 0.5 * MS)
    own = ProofSettings(delay=Tolerance(0.1 * MS))
    assert settle(own, kernel="host", virtual=False, quiet=None) == Tolerances(
        Tolerance(0.1 * MS), HOST.jitter, HOST.rate, rough_jitter=HOST.rough_jitter
    )


def test_a_link_of_2_ms_that_takes_3_fails() -> None:
    asked = Impairment(delay_ns=2 * MS, limit_packets=1000)
    assert verdicts(asked, frames(1000, 3 * MS, 0))["delay"] == "fails"
    assert judged(asked, frames(1000, 2.1 * MS, 0))["delay"].tolerance == 0.2 * MS


@pytest.mark.parametrize(("added_ns", "seen_ns", "verdict"), [
    (0.1 * MS, 2.1 * MS, "holds"),
    (0.7 * MS, 2.7 * MS, "cannot tell"),
    (0.7 * MS, 2 * MS, "cannot tell"),
    (0.7 * MS, 22 * MS, "fails"),
])  # fmt: skip
def test_a_loud_machine_does_not_judge_what_it_may_have_done_itself(
    added_ns: float, seen_ns: float, verdict: str
) -> None:
    asked = Impairment(delay_ns=2 * MS, limit_packets=1000)
    line = judged(asked, frames(1000, seen_ns, 0), noise=Noise(added_ns, added_ns, 0))["delay"]
    assert (line.verdict, line.machine) == (verdict, added_ns)
    if verdict == "cannot tell":
        assert line.reason.startswith("this machine adds 700 us, more than the tolerance of 200 us")


def test_the_probe_does_not_overrun_the_limit_by_itself() -> None:
    """Shows that probe frames are spaced to fit the limit: 2 ms apart, 150 frames are under way for 300
    ms.
    """
    short = Impairment(delay_ns=300 * MS, reorder=0.25, limit_packets=100)
    wide = Impairment(delay_ns=300 * MS, reorder=0.25, limit_packets=1000)
    for asked, interval in ((short, 3.7 * MS), (wide, probes.SPACING_NS)):
        of = [access("p", "way", node("p", 0, "n"), asked, PLAIN)]
        spaced = next(p for p in probes.spaced_probes(of) if p["direction"] == "forward")
        assert spaced["interval_ns"] == pytest.approx(interval, rel=0.05)
        assert asked.delay_ns / spaced["interval_ns"] < asked.limit_packets


def test_probes_are_bounded_however_many_links() -> None:
    wire = Impairment(delay_ns=MS, loss=0.01, limit_packets=1000)
    links = [access("p", f"l{n}", node("p", n, f"n{n}"), wire, wire) for n in range(250)]
    found = probes.spaced_probes(links)
    assert sum(p["count"] for p in found) <= probes.FRAMES_IN_ALL
    assert max(p["count"] * p["interval_ns"] for p in found) <= probes.LONGEST_NS
    slow = [access("p", "slow", node("p", 0, "n"), Impairment(rate_bps=8000, limit_packets=10), PLAIN)]
    spaced = next(p for p in probes.spaced_probes(slow) if p["direction"] == "forward")
    assert spaced["interval_ns"] >= 4 * spaced["size"] * 8 * 10**9 // 8000, "no queue from the probe itself"
    fast = [access("p", f"f{n}", node("p", n, f"n{n}"), *[Impairment(rate_bps=10**9, limit_packets=1000)] * 2)
            for n in range(350)]  # fmt: skip
    trains = probes.burst_probes(fast)
    assert sum(p["count"] for p in trains) <= 2 * probes.TRAIN_FRAMES_IN_ALL
    assert max(p["start_ns"] for p in trains) <= probes.STAGGER_NS


def test_gilbert_elliott_loss_in_the_long_run() -> None:
    draw, bad, lost, n = random.Random(2), False, 0, 200_000
    p, r, bad_loss, good_loss = 0.02, 0.3, 0.8, 0.01
    for _ in range(n):
        bad = draw.random() >= r if bad else draw.random() < p
        lost += draw.random() < (bad_loss if bad else good_loss)
    assert expected.stationary_loss(Impairment(gemodel=(p, r, bad_loss, good_loss))) == pytest.approx(
        lost / n, rel=0.05
    )


def test_intervals_against_published_values() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959964, abs=1e-6)
    assert wilson(10, 100, 1.959964) == pytest.approx((0.0552, 0.1744), abs=1e-4)  # Newcombe 1998, method 3
    assert wilson(0, 20, 1.959964)[0] == 0
    assert mean_interval([1, 2, 3, 4, 5], 2.0)[0] == 3
    assert z_for(1) < z_for(100) < z_for(1000) < 5


def test_correlated_loss_is_judged_by_what_netem_makes_of_it() -> None:
    """Shows that 20 % loss with a correlation of 25 % is judged against about 14 %, which the kernel's draws
    give (net/sched/sch_netem.c).
    """
    asked = Impairment(delay_ns=MS, loss=0.2, loss_correlation=0.25, limit_packets=1000)
    draw, last, kept = random.Random(3), 0.5, 0
    for _ in range(20_000):
        last = 0.75 * draw.random() + 0.25 * last
        kept += last >= 0.2
    seen = Seen(20_000, kept, 0, 0, [MS] * kept, range(kept))
    line = judged(asked, seen)["loss"]
    assert line.verdict == "holds" and line.requested == 0.2 and 0.1 < line.expected < 0.17
    assert line.reason.startswith("requested 20 %, which makes ")
    as_asked = Seen(20_000, 16_000, 0, 0, [MS] * 16_000, range(16_000))
    assert judged(asked, as_asked)["loss"].verdict == "fails", "what was asked is not what netem does"


def test_reasons_are_in_units_that_are_read_at_a_glance() -> None:
    asked = Impairment(delay_ns=20 * MS, jitter_ns=MS, limit_packets=1000)
    reason = judged(asked, frames(1000, 20 * MS, 4 * MS))["jitter"].reason
    assert reason.startswith("requested 1 ms, measured 3.") and reason.endswith(" ms (1000 frames)")
    assert shown("ns", 2.06e6, 2.594e6) == "2.06 to 2.59 ms"
    assert shown("bit/s", 950e3) == "950 kbit/s"
    assert shown("share", 0.0, 0.031) == "0 to 3.1 %"
    assert shown("ns", 0.0) == "0 ns"
