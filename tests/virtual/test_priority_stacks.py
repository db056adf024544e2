"""Priorities in the end nodes' own stacks: where they queue by priority no message waits for a transfer."""

from __future__ import annotations

import re

import pytest
from virtual_place import PROJECT, Place

from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import Topology, parse
from orchestrator.topology.network import LinkNics
from reports.papers.industrial_ethernet.tables import statistics
from reports.study import study_of_run

FILE = PROJECT / "topologies/papers/priority-stacks.yaml"


def shorter() -> str:
    """Each load for a third of the time."""

    def sooner(moment: re.Match[str]) -> str:
        return f"hold + {int(moment[1]) / 3:.3f} s"

    text = re.sub(r"hold \+ (\d+) s", sooner, FILE.read_text())
    return text.replace("for: 11 s", "for: 3.667 s").replace("hold: 108 s", "hold: 36 s")


def test_a_queue_in_the_nodes_own_stack_takes_the_transfer_away(place: Place) -> None:
    (place.cwd / "stacks.yaml").write_text(shorter())
    found = statistics(study_of_run(place.run("--lab", "stacks", file="stacks.yaml").run_dir))
    alone = {frames: found[frames, "alone"]["mean"] for frames in ("untagged", "tagged", "queues")}
    for frames in ("untagged", "tagged"):
        assert found[frames, "transmit"]["mean"] > 10 * alone[frames]
    assert found["queues", "transmit"]["mean"] == pytest.approx(alone["queues"], rel=0.5)
    assert all(found[frames, "transmit"]["n"] > 10 for frames in alone)


def asked(**parameters: str) -> Topology:
    return parse("stacks.yaml", FILE.read_bytes(), parameters)


def test_every_node_is_a_virtual_machine_where_that_is_asked_for() -> None:
    assert {node.kind for node in make_plan(asked(nodes="vm")).nodes} == {"vm"}


def test_the_master_with_queues_is_behind_a_pair_of_nics_where_that_is_asked_for() -> None:
    wires = {name: link.nics for name, link in asked(nics="NEAR FAR").model.links.items()}
    assert wires.pop("cable") == LinkNics(a="NEAR", b="FAR")
    assert set(wires.values()) == {None}
    assert make_plan(asked(nics="NEAR FAR")).links
