"""Tests the searches of RFC 2544 on simulated paths whose true answer is known, without a lab."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture.ethernet import line_fps, shaped_fps
from orchestrator.lab.clock import SECOND
from orchestrator.lab.drivers.fake_frames import FakePath
from orchestrator.lab.trials import search
from orchestrator.lab.trials.exchange import exchange, longest_ns
from orchestrator.lab.trials.search import Finding, Steps
from orchestrator.lab.trials.trial import Outcome, Trial
from orchestrator.software.frames.trials import Frames

SIZES = st.sampled_from([64, 128, 256, 512, 1024, 1280, 1518])
LINE = 1_000_000_000


def wanted(**changes: object) -> Frames:
    known = Frames(
        to="sink", interface="eth0", to_interface="eth0", sizes=(64,), tests=("throughput",),
        line_rate_bps=LINE, path_rate_bps=0, trial_ns=SECOND, settle_ns=SECOND, resolution=0.01, tolerate=0.0,
        loss_step=0.1, latency_trials=3, latency_trial_ns=SECOND, burst_ns=SECOND, burst_trials=1,
    )  # fmt: skip
    return dataclasses.replace(known, **changes)  # type: ignore[arg-type]  # the tests' own words


def follow(steps: Steps, path: FakePath, frames: Frames) -> tuple[Finding, list[Outcome]]:
    """Returns the finding, and the outcomes of all trials."""
    outcomes: list[Outcome] = []
    try:
        trial = next(steps)
        while True:
            outcomes.append(carried(path, frames, trial))
            assert len(outcomes) < 200, "the search does not end"
            trial = steps.send(outcomes[-1])
    except StopIteration as end:
        return end.value, outcomes


def carried(path: FakePath, frames: Frames, trial: Trial) -> Outcome:
    known = path.carry(trial.size, trial.rate_fps, trial.count, longest_ns(frames, trial), 0)
    answers = iter([{"armed": True, "mac": ""}, known["tx"], known["rx"]])
    return exchange(lambda _, **__: next(answers), "tester", frames, trial, 1)


@given(rate=st.integers(100_000, 2 * LINE), queue=st.integers(1, 20_000), size=SIZES)
@settings(max_examples=300, deadline=None)
def test_throughput_is_what_the_path_carries(rate: int, queue: int, size: int) -> None:
    """Shows that the throughput found is the path's rate: at most the resolution and 1 % below it (short
    trials cannot see a growing queue in that), and hardly above.
    """
    frames, path = wanted(), FakePath(rate, queue, tester_fps=math.inf)
    finding, outcomes = follow(search.throughput(frames, size), path, frames)
    true = min(shaped_fps(size, rate), line_fps(size, LINE))
    # A trial has a whole number of frames, and jitter moves the first and the last of them.
    assert true * (1 - 2 * frames.resolution) - 3 <= finding.value <= 1.001 * true + 3
    assert finding.limit == (
        "line" if shaped_fps(size, rate) > line_fps(size, LINE) * 1.01 else finding.limit
    )
    assert len(outcomes) <= 25


@given(rate=st.floats(1_000, 1e7), size=SIZES)
@settings(max_examples=100, deadline=None)
def test_a_tester_that_is_too_slow_is_named(rate: float, size: int) -> None:
    finding, outcomes = follow(search.throughput(wanted(), size), FakePath(tester_fps=rate), wanted())
    line = line_fps(size, LINE)
    assert finding.limit == ("tester" if rate < 0.98 * line else "line")
    assert finding.value == pytest.approx(min(rate, line), rel=0.02)
    assert len(outcomes) <= 4


@given(loss=st.floats(0.001, 1.0))
@settings(max_examples=50, deadline=None)
def test_a_path_that_always_loses_has_no_throughput(loss: float) -> None:
    """Shows that a path with random loss gets a rate of at most about 1/loss frames per trial; so few frames
    are sent that none is lost.
    """
    finding, _ = follow(search.throughput(wanted(), 512), FakePath(loss=loss, tester_fps=math.inf), wanted())
    assert finding.value <= 1 / loss + 10
    assert finding.limit == "path"


def test_tolerated_loss_is_none() -> None:
    frames = wanted(tolerate=0.02)
    finding, outcomes = follow(
        search.throughput(frames, 512), FakePath(loss=0.01, tester_fps=math.inf), frames
    )
    assert (finding.limit, len(outcomes)) == ("line", 1)


@given(rate=st.integers(1_000_000, LINE // 2), queue=st.integers(10, 5_000), size=SIZES)
@settings(max_examples=200, deadline=None)
def test_the_longest_burst_is_the_queue_and_what_leaves_it_meanwhile(
    rate: int, queue: int, size: int
) -> None:
    fast = 2 * line_fps(64, LINE)
    frames, path = wanted(), FakePath(rate, queue, tester_fps=fast)
    finding, outcomes = follow(search.back_to_back(frames, size, fast, 1, None), path, frames)
    true = queue / (1 - shaped_fps(size, rate) / fast)
    assert finding.value == pytest.approx(min(true, fast), rel=0.025, abs=2)
    again, fewer = follow(search.back_to_back(frames, size, fast, 2, int(finding.value)), path, frames)
    assert again.value == pytest.approx(finding.value, rel=0.03, abs=2)
    assert len(outcomes) <= 30 and len(fewer) <= 12


def test_the_loss_curve_ends_after_two_loads_without_loss() -> None:
    frames, path = wanted(), FakePath(LINE // 2, 10, tester_fps=math.inf)
    top = line_fps(1518, LINE)
    _, outcomes = follow(search.frame_loss(frames, 1518, top), path, frames)
    shares = [round(o.trial.rate_fps / top, 3) for o in outcomes]
    assert shares == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    assert [o.lost > 0 for o in outcomes] == [True] * 5 + [False] * 2
    for o, share in itertools.islice(zip(outcomes, shares, strict=True), 5):
        carried_share = shaped_fps(1518, LINE // 2) / (share * top)
        assert o.loss == pytest.approx(1 - carried_share, abs=0.002)


def test_latency_is_measured_at_the_rate_given_as_often_as_asked() -> None:
    frames = wanted(latency_trials=4, latency_trial_ns=2 * SECOND)
    _, outcomes = follow(search.latency(frames, 512, 1000.0), FakePath(delay_ns=5_000_000), frames)
    assert [(o.trial.rate_fps, o.trial.count, o.trial.repetition) for o in outcomes] == [
        (1000.0, 2000, n) for n in (1, 2, 3, 4)
    ]
    assert all(o.tagged_ns is not None and o.tagged_ns >= 5_000_000 for o in outcomes)


def outcome(**changes: int) -> Outcome:
    """Returns the outcome of a trial of a hundred frames at 1,000 a second that all arrived unchanged,
    modified by `changes`.
    """
    known = Outcome(
        Trial("throughput", 64, 1000.0, 100), sent=100, refused=0, late_ns=0, tx_first_ns=0,
        tx_last_ns=99_000_000, received=100, duplicates=0, reordered=0, corrupted=0, foreign=0, early=0,
        ring_dropped=0, rx_first_ns=5, rx_last_ns=99_000_005, tagged_ns=1, latency_min_ns=1,
        latency_mean_ns=1.0, latency_max_ns=1,
    )  # fmt: skip
    return dataclasses.replace(known, **changes)  # type: ignore[arg-type]  # counts


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("passed", {}),
        ("passed", {"duplicates": 3, "reordered": 2}),
        ("lost", {"received": 99}),
        ("lost", {"received": 98, "ring_dropped": 1}),
        ("tester", {"received": 99, "ring_dropped": 1}),
        ("tester", {"tx_last_ns": 110_000_000, "rx_last_ns": 110_000_000}),
        ("tester", {"sent": 0, "received": 0}),
        ("queued", {"rx_last_ns": 104_000_000}),
        ("passed", {"rx_last_ns": 100_900_000}),
    ],
)
def test_verdicts(verdict: str, changes: dict[str, int]) -> None:
    assert outcome(**changes).verdict(0.0) == verdict
