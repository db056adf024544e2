"""Tests the proof of paths by round trips: an echo delayed by another one must not leave a path unproven."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contract.plan.tolerance import Tolerance
from orchestrator.lab import path_proof
from orchestrator.lab.traceroute import Traceroute, TracerouteResult
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

RING = make_plan(load(Path(__file__).parents[2] / "topologies" / "ring.yaml"))
EACH = Tolerance(50_000.0)


class Wires:
    """A tracer whose echoes take the requested time; if several paths are traced together, one echo of each
    path is late.
    """

    def __init__(self, requested_ns: dict[tuple[str, str], int], always: bool = False) -> None:
        self._requested_ns, self._always = requested_ns, always
        self.calls: list[int] = []

    def traceroute(self, ways: Sequence[Traceroute]) -> list[TracerouteResult]:
        self.calls.append(len(ways))
        late = 2_000_000 if len(ways) > 1 or self._always else 0
        return [
            TracerouteResult(
                {}, [self._requested_ns.get((w.netns, w.address), 0) + late * (n == 0) for n in range(5)]
            )
            for w in ways
        ]


class Silent:
    """A tracer that gets no answers and keeps the paths of its first call."""

    def __init__(self) -> None:
        self.ways: Sequence[Traceroute] = ()

    def traceroute(self, ways: Sequence[Traceroute]) -> list[TracerouteResult]:
        self.ways = self.ways or ways
        return [TracerouteResult() for _ in ways]


def _requested_ns() -> dict[tuple[str, str], int]:
    silent = Silent()
    lines = [j for j in path_proof.prove(RING, silent, EACH) if j.quantity == "round trip"]
    assert {line.verdict for line in lines} == {"cannot tell"}
    return {(w.netns, w.address): round(j.requested) for w, j in zip(silent.ways, lines, strict=True)}


def test_an_echo_that_met_others_is_made_up_for() -> None:
    wires = Wires(_requested_ns())
    lines = [j for j in path_proof.prove(RING, wires, EACH) if j.quantity == "round trip"]
    assert {line.verdict for line in lines} == {"holds"}
    assert wires.calls == [len(lines)] + [1] * len(lines)


def test_a_path_that_is_longer_fails_all_the_same() -> None:
    longer = {way: ns + 5_000_000 for way, ns in _requested_ns().items()}
    lines = [j for j in path_proof.prove(RING, Wires(longer), EACH) if j.quantity == "round trip"]
    assert {line.verdict for line in lines} == {"fails"}


def test_a_path_that_stays_untold_is_tried_three_times() -> None:
    requested = _requested_ns()
    shaken = Wires({way: ns - 2_000_000 for way, ns in requested.items()}, always=True)
    shaken.traceroute = lambda ways: [  # type: ignore[method-assign]
        TracerouteResult({}, [requested[w.netns, w.address] + 3_000_000 * (n % 2) for n in range(5)])
        for w in ways
    ]
    lines = [j for j in path_proof.prove(RING, shaken, EACH) if j.quantity == "round trip"]
    assert {line.verdict for line in lines} == {"cannot tell"} and {line.n for line in lines} == {10}


def test_a_path_whose_every_echo_met_others_is_judged_alone() -> None:
    requested = _requested_ns()
    wires = Wires(requested)
    wires.traceroute = lambda ways: [  # type: ignore[method-assign]
        TracerouteResult({}, [requested[w.netns, w.address] + 2_000_000 * (len(ways) > 1)] * 5) for w in ways
    ]
    lines = [j for j in path_proof.prove(RING, wires, EACH) if j.quantity == "round trip"]
    assert {line.verdict for line in lines} == {"holds"} and {line.n for line in lines} == {5}
