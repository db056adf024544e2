"""Tests that an undecided rate, of one direction and of a half-duplex link, is measured again."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any, cast

import pytest
from lab_plans import MS, access, node

from contract.plan import Impairment, Link
from contract.plan.tolerance import ProofSettings, Tolerance
from contract.proof import Proven
from orchestrator.lab.driver import Driver
from orchestrator.lab.judgement import Seen
from orchestrator.lab.operations import Prove
from orchestrator.lab.proof import Prover
from orchestrator.lab.train import Realised, measured

SECOND = 1000 * MS
MBIT = 1_000_000


class Netem:
    """A driver whose links drop, delay, damage and pace frames as sch_netem.c does, one direction by itself
    or, of a half-duplex link, both in turns.
    """

    name = "simulated"

    def __init__(self, real: Impairment, *, late_ns: int = 0, shared: bool = False) -> None:
        self._real, self._late_ns, self._shared = real, late_ns, shared
        self._draw = random.Random(2)
        self.calls: list[list[dict[str, Any]]] = []

    def call(self, operation: Prove, patience_ns: int = 0) -> dict[str, Any]:
        probes = [dict(probe) for probe in operation.probes]
        self.calls.append(probes)
        if not self._shared:
            return {"probes": [self._carried([probe])[0] for probe in probes]}
        return {"probes": self._carried(probes)}

    def apply(self, _step: object) -> None:
        """Does nothing: the test has no real reference wire."""

    def _carried(self, probes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        real, free, leaving = self._real, 0, list[int]()
        sent = sorted(
            (p["start_ns"] + k * p["interval_ns"], n) for n, p in enumerate(probes) for k in range(p["count"])
        )
        found: list[list[tuple[int, int]]] = [[] for _ in probes]
        damaged = [0] * len(probes)
        for at, n in sent:
            leaving = [end for end in leaving if end > at]
            if self._draw.random() < real.loss or len(leaving) >= real.limit_packets:
                continue
            delay = real.delay_ns + round(real.jitter_ns * self._draw.uniform(-1, 1))
            free = max(free, at + delay) + probes[n]["size"] * 8 * SECOND // real.rate_bps
            leaving.append(free)
            if self._draw.random() < real.corrupt:
                damaged[n] += 1
                continue
            came = free + (self._draw.randrange(self._late_ns) if self._late_ns else 0)
            found[n].append((came, came - at))
        return [
            {
                "link": p["link"], "direction": p["direction"], "sent": p["count"],
                "received": len(found[n]) + damaged[n], "duplicates": 0, "corrupted": damaged[n],
                "delays_ns": [] if p.get("counts_only") else [delay for _, delay in found[n]],
                "arrivals_ns": [] if p.get("counts_only") else [came for came, _ in found[n]],
            }
            for n, p in enumerate(probes)
        ]  # fmt: skip


def link(asked: Impairment, *, half_duplex: bool = False) -> list[Link]:
    one, shared = access("p", "way", node("p", 0, "a"), asked, asked), "m.way" if half_duplex else None
    forward, reverse = replace(one.forward, shared=shared), replace(one.reverse, shared=shared)
    return [replace(one, forward=forward, reverse=reverse)]


def prover(wires: Netem, **asked: Any) -> Prover:
    return Prover(cast(Driver, wires), "core", replace(ProofSettings(), **asked), "uml", True, {})


def rates(wires: Netem, of: list[Link], *, once: bool = False, **asked: Any) -> dict[str, Proven]:
    found = prover(wires, **asked).prove(of, once=once)[0]
    return {j.direction: j for j in found if j.quantity == "rate"}


ASKED = Impairment(rate_bps=MBIT, limit_packets=1000)
HARD = [
    replace(ASKED, loss=0.95),
    replace(ASKED, loss=0.99, rate_bps=10 * MBIT),
    replace(ASKED, rate_bps=1200),
    replace(ASKED, corrupt=0.9),
    replace(ASKED, loss=0.5, limit_packets=12),
]


@pytest.mark.parametrize("asked", HARD)
def test_a_rate_that_one_train_leaves_open_gets_longer_ones(asked: Impairment) -> None:
    """Shows that if one train leaves a rate undecided, longer trains follow while there is time."""
    assert "cannot tell" in {j.verdict for j in rates(Netem(asked), link(asked), once=True).values()}
    found = rates(Netem(asked), link(asked))
    assert {j.verdict for j in found.values()} == {"holds"}
    slower = replace(asked, rate_bps=asked.rate_bps * 9 // 10)
    assert {j.verdict for j in rates(Netem(slower), link(asked)).values()} == {"fails"}, "10 % less shows"


def test_a_rate_that_the_first_train_decides_gets_no_other() -> None:
    wires = Netem(ASKED)
    assert {j.verdict for j in rates(wires, link(ASKED)).values()} == {"holds"}
    assert len(wires.calls) == 2, "the spaced frames and the trains"


@pytest.mark.parametrize("asked", [*HARD, replace(ASKED, loss=0.02, delay_ns=200 * MS, jitter_ns=50 * MS)])
@pytest.mark.parametrize("half_duplex", [False, True])
def test_the_time_that_is_told_is_the_time_that_tells(asked: Impairment, half_duplex: bool) -> None:
    of = link(asked, half_duplex=half_duplex)

    def judged(at_most_ns: int) -> list[Proven]:
        return prover(Netem(asked, shared=half_duplex), at_most_ns=at_most_ns).prove(of)[0]

    short = [j for j in judged(SECOND // 10) if j.verdict != "holds"]
    assert short and {j.verdict for j in short} == {"cannot tell"}
    told = [re.search(r"a longer proof decides: `proof: \{at_most: (\d+) s\}`", j.reason) for j in short]
    assert all(told), [j.reason for j in short]
    long = judged(max(int(one[1]) for one in told if one) * SECOND)
    ours = {(j.direction, j.quantity) for j in short}
    open_ = [j for j in long if (j.direction, j.quantity) in ours and j.verdict != "holds"]
    assert not open_, open_


def test_no_train_is_sent_again_that_would_show_nothing() -> None:
    """Shows that no further train is sent if it could not decide: a queue shorter than the jitter hides the
    rate, and a link that is down returns nothing.
    """
    hidden = replace(ASKED, rate_bps=10 * MBIT, delay_ns=500 * MS, jitter_ns=200 * MS, limit_packets=50)
    wires = Netem(replace(hidden, jitter_ns=0))
    assert {(j.verdict, j.needs) for j in rates(wires, link(hidden), at_most_ns=SECOND).values()} == {
        ("cannot tell", None)
    }
    dead = Netem(replace(ASKED, loss=1.0))
    assert {(j.verdict, j.needs) for j in rates(dead, link(ASKED)).values()} == {("cannot tell", None)}
    trains = [call for call in dead.calls if call[0]["size"] == 1514]
    assert len(trains) == 2, "one longer train shows as little as the first"
    for half_duplex in (False, True):
        lost = Netem(replace(ASKED, loss=1.0))
        found = rates(lost, link(replace(ASKED, loss=1.0), half_duplex=half_duplex))
        assert {(j.verdict, j.needs) for j in found.values()} == {("cannot tell", None)}
        assert max(probe["count"] for call in lost.calls for probe in call) < 100_000


def test_a_late_machine_needs_a_longer_train() -> None:
    """Shows that a machine that is late gets a longer train: the error of a rate is the machine's lateness
    divided by the train's length.
    """
    asked = replace(ASKED, rate_bps=5 * MBIT)
    once = rates(Netem(asked, late_ns=12 * MS), link(asked), once=True)
    assert {j.verdict for j in once.values()} == {"cannot tell"}
    assert all("a lab that serves waits for the first trains only" in j.reason for j in once.values())
    found = rates(Netem(asked, late_ns=12 * MS), link(asked), rate=Tolerance(share=0.01))
    assert {j.verdict for j in found.values()} == {"holds"}
    assert all(j.low is not None and j.low > 0.99 * asked.rate_bps for j in found.values())


def test_the_bound_holds_for_trains_too() -> None:
    asked = replace(ASKED, rate_bps=1200)
    wires = Netem(asked)
    found = rates(wires, link(asked), at_most_ns=10 * SECOND)
    assert {j.verdict for j in found.values()} == {"cannot tell"} and len(wires.calls) == 2
    assert all("at_most: " in j.reason for j in found.values())


def test_a_loss_on_a_half_duplex_link_does_not_refute_its_rate() -> None:
    """Shows that a loss of 90 % on a half-duplex link does not refute its rate, though a third of the train's
    rate remains.
    """
    asked = replace(ASKED, loss=0.9)
    of = link(asked, half_duplex=True)
    assert rates(Netem(asked, shared=True), of, once=True)["both"].verdict == "cannot tell"


@pytest.mark.parametrize(
    "asked", [replace(ASKED, loss=0.9), replace(ASKED, corrupt=0.3), replace(ASKED, corrupt=0.9)]
)
def test_frames_that_never_show_do_not_refute_a_half_duplex_rate(asked: Impairment) -> None:
    """Shows that frames with a flipped bit do not refute the rate of a half-duplex link; such frames take
    their time, but their arrivals are unknown.
    """
    of = link(asked, half_duplex=True)
    assert rates(Netem(asked, shared=True), of)["both"].verdict == "holds"
    slower = replace(asked, rate_bps=9 * MBIT // 10)
    assert rates(Netem(slower, shared=True), of)["both"].verdict == "fails"


def test_a_half_duplex_rate_that_is_open_names_the_time_and_goes_on() -> None:
    asked = replace(ASKED, rate_bps=9600)
    of = link(asked, half_duplex=True)
    short = rates(Netem(asked, shared=True), of, at_most_ns=3 * SECOND)["both"]
    assert short.verdict == "cannot tell" and short.needs is not None
    (told,) = re.findall(r"a longer proof decides: `proof: \{at_most: (\d+) s\}`", short.reason)
    whole = Netem(asked, shared=True)
    assert rates(whole, of, at_most_ns=int(told) * SECOND)["both"].verdict == "holds"


def test_damaged_copies_leave_holes_whose_places_are_known() -> None:
    """Shows that the rate is judged although damaged copies leave more holes than frames can be missing."""
    asked = replace(ASKED, duplicate=0.2, corrupt=0.05)
    draw, slot, places, arrived, copies, damaged = random.Random(5), 0, list[int](), 0, 0, 0
    for _ in range(60):
        intact = 0
        for _ in range(1 + (draw.random() < asked.duplicate)):
            if draw.random() < asked.corrupt:
                damaged += 1
            else:
                places += [] if intact else [slot]
                intact += 1
            slot += 1
        arrived, copies = arrived + bool(intact), copies + (intact == 2)
    arrivals = [n * 12_112_000 for n in places]
    train = Seen(60, arrived + damaged, copies, damaged, [at + SECOND for at in arrivals], arrivals)
    found = measured(asked, train)
    assert slot - arrived > 60 + copies - arrived, "more holes than lost frames and second copies"
    assert (
        isinstance(found, Realised) and found.holes == 0 and found.rate_bps == pytest.approx(MBIT, rel=1e-3)
    )
