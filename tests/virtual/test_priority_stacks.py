"""Tests priorities in the end nodes' own stacks: with priority queues no message waits for a transfer."""

from __future__ import annotations

import json

import pytest
from shorter_stacks import FILE, RECEIVE, shorter
from virtual_place import Place

from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import Topology, parse
from orchestrator.topology.network import LinkNics
from reports.papers.industrial_ethernet.tables import statistics
from reports.study import study_of_run


def test_a_queue_in_the_nodes_own_stack_takes_the_transfer_away(place: Place) -> None:
    (place.cwd / "stacks.yaml").write_text(shorter())
    found = statistics(study_of_run(place.run("--lab", "stacks", file="stacks.yaml").run_dir).cells)
    alone = {frames: found[frames, "alone"]["mean"] for frames in ("untagged", "tagged", "queues")}
    for frames in ("untagged", "tagged"):
        assert found[frames, "transmit"]["mean"] > 10 * alone[frames]
    assert found["queues", "transmit"]["mean"] == pytest.approx(alone["queues"], rel=0.5)
    assert all(found[frames, "transmit"]["n"] > 10 for frames in alone)


@pytest.mark.sweep
def test_a_receive_queue_lets_messages_pass_a_transfer_that_the_stack_is_slower_than(place: Place) -> None:
    """Shows for a stack that is slower than the transfer: with one receive queue, a message waits for the
    whole transfer before it; with two queues, it waits only for the frame in processing.
    """
    (place.cwd / "receive.yaml").write_text(shorter(10, RECEIVE))
    run = place.run("-p", "input=42mbit", "-p", "trips=20 /s", file="receive.yaml").run_dir
    events = [json.loads(line) for line in (run / "raw" / "events.jsonl").read_text().splitlines()]
    assert events and all(event["ok"] for event in events)
    found = statistics(study_of_run(run).cells)
    frame_us = 1518 * 8 / 42
    for frames in ("untagged", "tagged"):
        assert found[frames, "receive"]["mean"] > found["queues", "receive"]["mean"] + 2 * frame_us
    assert found["queues", "receive"]["max"] < found["queues", "alone"]["max"] + 2 * frame_us
    assert all(found[frames, "receive"]["n"] > 10 for frames in ("untagged", "tagged", "queues"))


def asked(**parameters: str) -> Topology:
    return parse("stacks.yaml", FILE.read_bytes(), parameters)


def test_every_node_is_a_virtual_machine_where_that_is_asked_for() -> None:
    assert {node.kind for node in make_plan(asked(nodes="vm")).nodes} == {"vm"}


@pytest.mark.parametrize("wired", ["untagged", "tagged", "queues"])
def test_one_master_is_behind_a_pair_of_nics_where_that_is_asked_for(wired: str) -> None:
    topology = asked(nics="NEAR FAR", wired=wired)
    links = dict(topology.model.links)
    cable = links.pop("cable")
    assert (cable.nics, list(cable.between)) == (LinkNics(a="NEAR", b="FAR"), [f"{wired}-master", wired])
    assert {link.nics for link in links.values()} == {None}
    assert make_plan(topology).links
