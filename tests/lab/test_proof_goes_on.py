"""Tests that a proof continues until it can decide, measures equal directions together, and names a remedy if
it cannot decide.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_plans import MS, access, node

from contract.plan import Impairment, Link
from contract.plan.tolerance import ProofSettings, Tolerance
from contract.proof import Proven
from orchestrator.lab import probes
from orchestrator.lab.judge import judge
from orchestrator.lab.judgement import Seen, verdict
from orchestrator.lab.operations import Prove
from orchestrator.lab.proof import Prover
from orchestrator.lab.tolerance import HOST

SECOND = 1000 * MS
PLAIN = Impairment()
LOSSY = Impairment(delay_ns=20 * MS, loss=0.02, limit_packets=1000)
JITTERY = Impairment(delay_ns=20 * MS, jitter_ns=5 * MS, distribution="normal", limit_packets=1000)


class Wires:
    """A driver whose links have the properties that `real` gives for their direction, and otherwise the
    requested ones.
    """

    name = "simulated"

    def __init__(self, asked: Impairment, real: Mapping[tuple[str, str], Impairment] | None = None) -> None:
        self._asked, self._real, self._draw = asked, real or {}, random.Random(1)
        self.calls: list[list[dict[str, Any]]] = []

    def call(self, operation: Prove, patience_ns: int = 0) -> dict[str, Any]:
        self.calls.append([dict(probe) for probe in operation.probes])
        return {"probes": [self._answer(dict(probe)) for probe in operation.probes]}

    def apply(self, _step: object) -> None:
        """Does nothing: the test has no real reference wire."""

    def _answer(self, probe: dict[str, Any]) -> dict[str, Any]:
        real = self._real.get((probe["link"], probe["direction"]), self._asked)
        kept = sum(self._draw.random() >= real.loss for _ in range(probe["count"]))
        delays = [] if probe.get("counts_only") else [self._delay(real) for _ in range(kept)]
        return {
            "link": probe["link"], "direction": probe["direction"], "sent": probe["count"], "received": kept,
            "duplicates": 0, "corrupted": 0, "delays_ns": delays, "arrivals_ns": delays,
        }  # fmt: skip

    def _delay(self, real: Impairment) -> int:
        return real.delay_ns + round(max(-4, min(4, self._draw.gauss(0, 1))) * real.jitter_ns)


def links(asked: Impairment, count: int = 1) -> list[Link]:
    return [access("p", f"l{n}", node("p", n, f"n{n}"), asked, asked) for n in range(count)]


def proven(
    wires: Wires, of: list[Link], virtual: bool = True, once: bool = False, **asked: int
) -> list[Proven]:
    settings = replace(ProofSettings(), **asked)  # type: ignore[arg-type]
    prover = Prover(wires, "core", settings, "uml", virtual, {})  # type: ignore[arg-type]
    return prover.prove(of, once=once)[0]


def told(lines: list[Proven], quantity: str) -> set[str]:
    return {line.verdict for line in lines if line.quantity == quantity}


@given(st.floats(0, 10), st.floats(0, 5), st.floats(0, 10), st.floats(0, 5))
def test_the_rule(middle: float, half: float, expected: float, tolerance: float) -> None:
    low, high, least, most = middle - half, middle + half, expected - tolerance, expected + tolerance
    found = verdict(low, high, least, most)
    assert (found == "holds") == (least <= low and high <= most)
    if found == "fails":
        assert not least <= middle <= most, "what was measured is outside, too"


def test_an_interval_wider_than_the_tolerance_is_no_proof() -> None:
    """Shows that an interval of 2.7 to 7.2 ms does not prove a jitter whose tolerance is 0.25 ms."""
    draw = random.Random(3)
    delays = [20 * MS + round(draw.gauss(0, 5 * MS)) for _ in range(181)]
    seen = Seen(181, 181, 0, 0, delays, [])
    of = [access("p", "wire", node("p", 0, "a"), JITTERY, PLAIN)]
    spaced = {("wire", "forward"): seen, ("wire", "reverse"): Seen(5, 5, 0, 0, [0] * 5, [])}
    line = next(j for j in judge(of, spaced, {}, HOST) if j.quantity == "jitter")
    assert line.verdict == "cannot tell" and line.needs is not None and line.needs > 181
    assert "181 frames only show" in line.reason and "tolerance 250 us" in line.reason


def test_a_proof_goes_on_until_it_can_tell() -> None:
    wires = Wires(JITTERY)
    lines = proven(wires, links(JITTERY))
    assert {line.verdict for line in lines} == {"holds"}
    assert len(wires.calls) > 1 and "needs" not in {line.reason for line in lines}
    once = proven(Wires(JITTERY), links(JITTERY), once=True, longest_ns=SECOND // 2)
    assert told(once, "jitter") == {"cannot tell"}, "a lab that serves does not wait"


@pytest.mark.parametrize("off", [0.5, 2.0])
def test_a_share_that_is_wrong_fails(off: float) -> None:
    wrong = replace(LOSSY, loss=LOSSY.loss * off)
    lines = proven(Wires(wrong), links(LOSSY))
    assert told(lines, "loss") == {"fails"} and told(lines, "delay") == {"holds"}


def test_a_share_is_told_to_a_quarter_of_it() -> None:
    (line,) = {j.tolerance: j for j in proven(Wires(LOSSY), links(LOSSY)) if j.quantity == "loss"}.values()
    assert line.verdict == "holds" and line.tolerance == pytest.approx(0.005)
    assert line.low is not None and line.low >= 0.015 and line.high is not None and line.high <= 0.025
    rare = replace(LOSSY, loss=0.004)
    found = {j.tolerance for j in proven(Wires(rare), links(rare), once=True) if j.quantity == "loss"}
    assert found.pop() == pytest.approx(0.002) and not found


def test_what_would_take_too_long_is_not_begun_and_says_how_long_it_takes() -> None:
    rare = replace(LOSSY, loss=0.0001)
    wires = Wires(rare)
    lines = [j for j in proven(wires, links(rare), virtual=False) if j.quantity == "loss"]
    assert {j.verdict for j in lines} == {"cannot tell"}
    assert len([c for c in wires.calls if c[0]["link"] == "l0"]) == 1
    assert all("a longer proof decides: `proof: {at_most: 1" in j.reason for j in lines)


def test_all_trains_fit_the_bound() -> None:
    wires = Wires(LOSSY)
    proven(wires, links(LOSSY, 3), virtual=False, at_most_ns=20 * SECOND)
    lengths = [max(p["count"] * p["interval_ns"] for p in c) for c in wires.calls if c[0]["link"] == "l0"]
    assert len(lengths) > 1 and sum(lengths) <= 20 * SECOND
    frames = sum(p["count"] for c in wires.calls for p in c if p["link"] != "ref.a")
    assert frames <= 20 * 4000 + 8000


def test_more_frames_than_a_message_holds_are_sent_in_several_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shows that two million frames, as for a jitter of 0.6 %, are sent in several calls: one answer would
    exceed the length of a message.
    """
    whole = Wires(JITTERY)
    proven(whole, links(JITTERY))
    sent = [sum(p["count"] for p in call) for call in whole.calls]
    assert max(sent) > 3000
    monkeypatch.setattr(probes, "ANSWERED_MOST", 3000)
    monkeypatch.setattr(probes.in_calls, "__defaults__", (3000,))
    wires = Wires(JITTERY)
    assert {line.verdict for line in proven(wires, links(JITTERY))} == {"holds"}
    assert max(sum(p["count"] for p in call) for call in wires.calls) <= 3000 < sum(sent)


def test_equal_directions_are_pooled_but_a_bad_one_does_not_hide_among_them() -> None:
    of = links(LOSSY, 6)
    lines = [j for j in proven(Wires(LOSSY), of) if j.quantity == "loss"]
    assert {j.verdict for j in lines} == {"holds"}
    assert {j.directions for j in lines} == {12} and "12 equal directions together" in lines[0].reason
    bad = Wires(LOSSY, {("l3", "reverse"): replace(LOSSY, loss=0.3)})
    lines = [j for j in proven(bad, of) if j.quantity == "loss"]
    assert {(j.link, j.direction) for j in lines if j.verdict == "fails"} == {("l3", "reverse")}
    assert {j.verdict for j in lines if (j.link, j.direction) != ("l3", "reverse")} == {"holds"}


def test_a_jitter_is_told_to_a_twentieth_of_it() -> None:
    lines = {j.quantity: j for j in proven(Wires(JITTERY), links(JITTERY)) if j.direction == "forward"}
    assert lines["jitter"].tolerance == lines["delay"].tolerance == JITTERY.jitter_ns / 20
    assert {lines["jitter"].verdict, lines["delay"].verdict} == {"holds"}
    wider = replace(JITTERY, jitter_ns=round(JITTERY.jitter_ns * 1.08))
    assert told(proven(Wires(wider), links(JITTERY)), "jitter") == {"fails"}


def test_a_jitter_that_there_is_no_time_for_is_told_to_a_tenth() -> None:
    """Shows that a jitter in front of a rate limit is measured to a tenth of its value if there is no time
    for more: the frames are sent four jitters apart.
    """
    rated = replace(JITTERY, rate_bps=5_000_000)
    idle = {("ref.a", "forward"): Impairment(delay_ns=MS)}
    wires = Wires(rated, idle)
    lines = {j.quantity: j for j in proven(wires, links(rated, 3), virtual=False) if j.direction == "forward"}
    assert lines["jitter"].verdict == "holds" and lines["jitter"].tolerance == JITTERY.jitter_ns / 10
    lengths = [max(p["count"] * p["interval_ns"] for p in c) for c in wires.calls if c[0]["link"] == "l0"]
    assert sum(lengths) <= 62 * SECOND
    asked = Prover(Wires(rated, idle), "core", ProofSettings(jitter=Tolerance(share=0.05)), "uml", False, {})  # type: ignore[arg-type]
    found = [j for j in asked.prove(links(rated, 3))[0] if j.quantity == "jitter"]
    assert {j.tolerance for j in found} == {JITTERY.jitter_ns / 20} and {j.verdict for j in found} == {
        "cannot tell"
    }
    assert "a longer proof decides" in found[0].reason


def test_in_virtual_time_frames_that_do_not_meet_are_sent_together() -> None:
    """Shows that in virtual time the frames of links without a common path are sent together, and that a link
    with constant delay gets a hundred frames, not a thousand.
    """
    wires = Wires(LOSSY)
    proven(wires, links(LOSSY))
    assert {p["batch"] for p in wires.calls[0]} == {64} and {p["count"] for p in wires.calls[0]} == {1000}
    steady = Impairment(delay_ns=20 * MS, limit_packets=1000)
    wires = Wires(steady)
    assert {j.verdict for j in proven(wires, links(steady))} == {"holds"}
    assert [{p["count"] for p in call} for call in wires.calls] == [{100}]
    slow = replace(LOSSY, rate_bps=1_000_000)
    wires = Wires(slow)
    proven(wires, links(slow))
    assert not any("batch" in p for p in wires.calls[0]), "behind a rate they would wait for one another"


def test_a_machine_that_is_late_is_told_in_the_rates_own_unit() -> None:
    """Shows that a late machine's error is given in the unit of the rate: kbit/s, not ms."""
    asked = Impairment(delay_ns=MS, rate_bps=5_000_000, limit_packets=1000)
    of = [access("p", "wire", node("p", 0, "a"), asked, PLAIN)]
    quiet = Seen(50, 50, 0, 0, [2 * MS] * 50, [])
    spaced = {("wire", "forward"): quiet, ("wire", "reverse"): quiet}
    draw, spacing = random.Random(1), 1514 * 8 * 10**9 // 5_000_000
    arrivals = [200 * MS + n * spacing + draw.randrange(12 * MS) for n in range(100)]
    train = Seen(100, 100, 0, 0, [at - n * 1000 for n, at in enumerate(arrivals)], arrivals)
    line = next(j for j in judge(of, spaced, {("wire", "forward"): train}, HOST) if j.quantity == "rate")
    assert line.verdict == "cannot tell"
    assert (
        " ms, which is up to " in line.reason and "bit/s, more than the tolerance of 50 kbit/s" in line.reason
    )


def test_a_jitter_that_hides_reordered_frames_does_not_fail_for_them() -> None:
    """Shows that a correct link does not fail because of reordered frames: an earlier version left out delays
    of less than a quarter of the mean.
    """
    asked = Impairment(delay_ns=10 * MS, jitter_ns=9 * MS, reorder=0.02, limit_packets=1000)
    draw = random.Random(4)

    def judged(mean_ns: int) -> dict[str, Proven]:
        delays = [
            0 if draw.random() < 0.02 else round(mean_ns + draw.uniform(-9, 9) * MS) for _ in range(30_000)
        ]
        seen = Seen(30_000, 30_000, 0, 0, delays, [])
        of = [access("p", "wire", node("p", 0, "a"), asked, PLAIN)]
        spaced = {("wire", "forward"): seen, ("wire", "reverse"): Seen(5, 5, 0, 0, [0] * 5, [])}
        found = judge(of, spaced, {}, HOST)
        return {j.quantity: j for j in found if j.direction == "forward"}

    lines = judged(10 * MS)
    assert lines["delay"].verdict == "holds" and lines["delay"].expected == pytest.approx(9.8 * MS)
    assert {lines[name].verdict for name in ("jitter", "reorder")} == {"cannot tell"}
    assert all("hides which" in lines[name].reason for name in ("jitter", "reorder"))
    assert judged(12 * MS)["delay"].verdict == "fails"
