"""Tests the measured shares of a link that loses, duplicates and corrupts frames at once, against a
simulation of netem.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_plans import access, node

from contract.plan import Impairment
from contract.proof import Proven
from orchestrator.lab import expected
from orchestrator.lab.judge import judge
from orchestrator.lab.judgement import Seen
from orchestrator.lab.probes import spaced_size
from orchestrator.lab.tolerance import VIRTUAL
from orchestrator.plan.correlation import effective_share, spared_twice

N = 200_000
MINGLED = [
    Impairment(loss=0.01, duplicate=0.2, corrupt=0.2, limit_packets=1000),
    Impairment(loss=0.05, duplicate=0.5, corrupt=0.5, limit_packets=1000),
    Impairment(loss=0.2, duplicate=0.2, corrupt=0.05, limit_packets=1000),
    Impairment(loss=0.005, corrupt=0.5, limit_packets=1000),
    Impairment(duplicate=0.5, corrupt=0.05, limit_packets=1000),
    Impairment(loss=0.05, duplicate=0.1, limit_packets=1000),
    Impairment(loss=0.05, corrupt=0.01, limit_packets=1000),
]


def seen(of: Impairment, n: int = N, seed: int = 1) -> Seen:
    """Returns the counts of a probe after netem as in sch_netem.c: each copy draws its own loss and flipped
    bit, and a frame with a flipped bit has no readable number (images/agent/src/prove.rs).
    """
    draw = random.Random(seed)
    received = duplicates = corrupted = 0
    for _ in range(n):
        twice, lost = draw.random() < of.duplicate, draw.random() < of.loss
        copies = 1 + twice - lost
        if copies == 2 and draw.random() < of.loss:
            copies = 1
        intact = 0
        for _ in range(copies):
            if draw.random() >= of.corrupt:
                intact += 1
            elif draw.randrange(spaced_size(of)) >= expected.UNSEEN:
                corrupted += 1
        received += bool(intact)
        duplicates += intact == 2
    return Seen(n, received + corrupted, duplicates, corrupted, [1000] * 100, [1000] * 100)


def judged(asked: Impairment, found: Seen) -> dict[str, Proven]:
    of = [access("p", "wire", node("p", 0, "a"), asked, Impairment())]
    plain = Seen(5, 5, 0, 0, [0] * 5, [])
    lines = judge(of, {("wire", "forward"): found, ("wire", "reverse"): plain}, {}, VIRTUAL)
    return {j.quantity: j for j in lines if j.direction == "forward"}


@pytest.mark.parametrize("asked", MINGLED)
def test_what_a_right_link_shows_holds(asked: Impairment) -> None:
    """Shows that all shares of a correct link hold: shares are corrected for each other's effect."""
    lines = judged(asked, seen(asked))
    assert {j.verdict for j in lines.values()} == {"holds"}, lines
    for line in lines.values():
        assert line.measured is not None and 0 <= line.measured <= 1
        if line.low is not None and line.high is not None:
            share = line.tolerance and abs(line.measured - line.expected) / line.tolerance
            assert share is not None and share < 0.5, f"{line.name}: the expected share is off"


@pytest.mark.parametrize("quantity", ["loss", "duplicate", "corrupt"])
def test_a_wrong_share_fails_among_the_others(quantity: str) -> None:
    asked = Impairment(loss=0.1, duplicate=0.2, corrupt=0.1, limit_packets=1000)
    given = {"loss": asked.loss, "duplicate": asked.duplicate, "corrupt": asked.corrupt}
    real = Impairment(**{**given, quantity: 2 * given[quantity]}, limit_packets=1000)  # type: ignore[arg-type]
    assert judged(asked, seen(real))[quantity].verdict == "fails"


def test_shares_that_hardly_mingle_are_what_they_were() -> None:
    """Shows that small shares are not corrected, so that runs in virtual time keep their bytes: 1 % of copies
    changes a share by less than a fiftieth.
    """
    asked = Impairment(duplicate=0.01, corrupt=0.002, limit_packets=1000)
    assert expected.duplicated(asked) == 0.01 and expected.counted_twice(asked) == 0
    assert expected.corrupted(asked) == pytest.approx(0.002 * (1 - 14 / 512))


@given(
    st.sampled_from(MINGLED), st.integers(1, 2000), st.integers(0, 4000), st.integers(0, 4000),
    st.integers(0, 4000),
)  # fmt: skip
def test_no_count_ends_the_proof_with_an_error(
    asked: Impairment, sent: int, received: int, duplicates: int, corrupted: int
) -> None:
    found = Seen(sent, received, min(duplicates, sent), corrupted, [], [])
    assert {j.verdict for j in judged(asked, found).values()} <= {"holds", "fails", "cannot tell"}


@pytest.mark.parametrize("law", ["uniform", "normal"])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_copy_that_overtakes_makes_delays_shorter(law: str, share: float) -> None:
    """Shows that the expected delay takes copies into account: the earlier of two copies counts."""
    ms, draw = 1_000_000, random.Random(3)
    asked = Impairment(
        delay_ns=100 * ms, jitter_ns=10 * ms, distribution=law, duplicate=share, limit_packets=1000
    )

    def delay() -> int:
        spread = draw.uniform(-1, 1) if law == "uniform" else draw.gauss(0, 1)
        return round(asked.delay_ns + asked.jitter_ns * spread)

    delays = [min(delay(), delay()) if n < share * N else delay() for n in range(N)]
    found = Seen(N, N, round(share * N), 0, delays, delays)
    lines = judged(asked, found)
    assert {lines[name].verdict for name in ("delay", "jitter", "duplicate")} == {"holds"}
    for name, part in (("delay", 0.002), ("jitter", 0.01)):
        assert lines[name].measured == pytest.approx(lines[name].expected, rel=part)
    assert lines["delay"].expected < asked.delay_ns - 0.3 * share * asked.jitter_ns
    in_order = Impairment(
        delay_ns=100 * ms, jitter_ns=10 * ms, distribution=law, duplicate=share, rate_bps=10**9
    )
    assert expected.mean_ns(in_order) == pytest.approx(asked.delay_ns, rel=0.001), "a rate keeps the order"


@pytest.mark.parametrize(("chance", "memory"), [(0.6, 0.25), (0.6, 0.75), (0.2, 0.5), (0.3, 0.0)])
def test_a_copy_shares_the_fate_of_its_frame_as_far_as_losses_are_correlated(
    chance: float, memory: float
) -> None:
    """Shows that correlated losses hit a frame and its copy together: netem draws for the copy next, so at 60
    % and 25 % a fifth more pairs pass than by chance.
    """
    draw, x, before, passed, both = random.Random(1), 0.5, False, 0, 0
    for _ in range(N):
        x = (1 - memory) * draw.random() + memory * x
        passed, both, before = passed + (x >= chance), both + (before and x >= chance), x >= chance
    assert spared_twice(chance, memory) == pytest.approx(both / N, abs=0.004)
    assert effective_share(chance, memory) == pytest.approx(1 - passed / N, abs=0.004)
    asked = Impairment(loss=chance, loss_correlation=memory, duplicate=0.1, limit_packets=1000)
    assert expected.duplicated(asked) == pytest.approx(0.1 * both / N, rel=0.04)


def test_a_copy_meets_the_burst_of_its_frame() -> None:
    asked = Impairment(gemodel=(0.2, 0.2, 1.0, 0.0), duplicate=0.3, limit_packets=1000)
    assert expected.duplicated(asked) == pytest.approx(0.3 * 0.5 * 0.8)
