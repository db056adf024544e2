"""Tests the drawing of trials and the guidance of a search with simulated outcomes; no lab runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.hunt.checking import faults
from orchestrator.hunt.drawing import Space, draw, length_ns
from orchestrator.hunt.files import content
from orchestrator.hunt.guidance import Guidance
from orchestrator.hunt.model import Outcome, Trial, begin_ns, kind_of
from orchestrator.hunt.shrinking import Shrinker
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.language.source import read_document
from orchestrator.plan.build import make_plan
from orchestrator.topology import load
from orchestrator.topology.checks.hunt import everywhere

SHIPPED = Path(__file__).parents[2] / "topologies" / "hunt"

SPACE = Space(
    [{"kill": "broker", "for": "0.1..5 s"}, {"link-down": "wan", "for": "0.1..5 s"}],
    {"qos": [1, 2]},
    4,
    10**10,
)


def searched(seed: int) -> list[Trial]:
    guidance, found = Guidance(SPACE), []
    for begin in range(1, 41, 8):
        lesson = guidance.lesson()
        drawn = [draw(SPACE, seed, number, lesson) for number in range(begin, begin + 8)]
        done = [(one, Outcome(one.number, "holds", features=(str(len(one.events)),))) for one in drawn]
        guidance.learn(list(reversed(done)))  # in the order in which workers end
        found += drawn
    return found


def test_the_shipped_reproduction_is_the_hunted_file_with_one_event() -> None:
    hunted = read_document("amqtt", (SHIPPED / "amqtt.yaml").read_bytes()).data
    found = read_document("found", (SHIPPED / "amqtt-link-down.yaml").read_bytes()).data
    event = {"at": "hold + 5 s", "link-down": "wan", "for": "2 s"}
    shorter = {**hunted, "run": {**hunted["run"], "hold": "9 s"}}
    del shorter["description"]
    text = content(Trial(2, 1, (event,), {}, shorter))
    assert read_document("again", text.encode()).data == found
    assert make_plan(load(SHIPPED / "amqtt-link-down.yaml", {})).seed == found["seed"]


def test_the_end_of_the_hold_is_quiet() -> None:
    space = Space(SPACE.faults, {}, 4, 10**10, 7 * 10**9)
    events = [event for number in range(200) for event in draw(space, 1, number).events]
    assert events and max(begin_ns(event) + length_ns(event) for event in events) <= 3 * 10**9
    loud = [event for number in range(200) for event in draw(SPACE, 1, number).events]
    assert max(map(begin_ns, loud)) > 5 * 10**9


def test_shrinking_keeps_the_quiet_end() -> None:
    event = {"at": "hold + 1 s", "kill": "broker", "for": "1 s"}
    trial = Trial(1, 1, (event,), {}, {"run": {"hold": "60 s"}})
    small = Shrinker(lambda _: True, quiet_ns=20 * 10**9).shrink(trial, 1, {})
    assert small.data["run"]["hold"] == "23 s"
    assert Shrinker(lambda _: True).shrink(trial, 1, {}).data["run"]["hold"] == "3 s"


@pytest.mark.parametrize("built", [True, False])
def test_clocks_and_schedules_are_faults_of_all_nodes_with_programs(
    built: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VirtualKernel, "with_faults", "a kernel" if built else None)
    topology = load(SHIPPED / "rabbitmq.yaml", {})
    kinds = [kind_of(fault) for fault in faults(topology)]
    found = [one for one in kinds if one.startswith(("schedule", "clock"))]
    assert found == (["schedule broker", "clock broker"] if built else [])
    assert everywhere({"schedule": True}, topology.names) == {"schedule": ["broker"]}
    assert everywhere({"schedule": "broker"}, topology.names) == {"schedule": "broker"}
    drawn = [
        draw(Space([{"clock": "broker", "offset": "-60..60 s"}], {}, 1, 10**10), 1, n) for n in range(40)
    ]
    signs = {event["offset"].startswith("-") for trial in drawn for event in trial.events}
    assert signs == {True, False}


def test_the_seed_decides_all_trials() -> None:
    assert searched(1) == searched(1) and searched(1) != searched(2)


def test_a_failure_is_shrunk_to_the_events_that_it_needs() -> None:
    def fails(trial: Trial) -> bool:
        return any("kill" in event for event in trial.events)

    trial = next(one for one in searched(1) if len(one.events) > 2 and fails(one))
    small = Shrinker(fails).shrink(trial, 1, {"qos": 1})
    assert [next(key for key in event if key != "at") for event in small.events] == ["kill"]
    assert (small.seed, small.parameters["qos"]) == (1, 1) and fails(small)
