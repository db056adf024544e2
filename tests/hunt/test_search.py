"""Tests drawing and guidance with an invented outcome: no lab runs."""

from __future__ import annotations

from pathlib import Path

from orchestrator.hunt.drawing import Space, draw
from orchestrator.hunt.files import content
from orchestrator.hunt.guidance import Guidance
from orchestrator.hunt.model import Outcome, Trial
from orchestrator.hunt.shrinking import Shrinker
from orchestrator.language.source import read_document
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

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
        guidance.learn(list(reversed(done)))  # whichever worker ends first
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


def test_the_seed_decides_all_trials() -> None:
    assert searched(1) == searched(1) and searched(1) != searched(2)


def test_a_failure_is_shrunk_to_the_events_that_it_needs() -> None:
    def fails(trial: Trial) -> bool:
        return any("kill" in event for event in trial.events)

    trial = next(one for one in searched(1) if len(one.events) > 2 and fails(one))
    small = Shrinker(fails).shrink(trial, 1, {"qos": 1})
    assert [next(key for key in event if key != "at") for event in small.events] == ["kill"]
    assert (small.seed, small.parameters["qos"]) == (1, 1) and fails(small)
