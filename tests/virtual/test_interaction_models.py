"""Tests the paper's interaction models with few nodes: answers, repairs, and no frame above 127 bytes."""

from __future__ import annotations

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from orchestrator.kernel.facts import find_tool
from reports.papers.vnet_2014_models.wire import wire_metrics
from reports.rundir import read_run

SMALL = ("-p", "consumers=3")


def figures(place: Place, model: str, *more: str) -> tuple[dict[str, float], pl.DataFrame]:
    file = PROJECT / "topologies/papers" / f"interaction-{model}.yaml"
    run = read_run(place.run(*SMALL, *more, file=str(file)).run_dir)
    return {m.name: m.value for m in wire_metrics(run)}, run.tables["messages"]


def test_udp_is_twenty_fragments_each_way(place: Place) -> None:
    found, messages = figures(place, "udp", "-p", "network=ideal", "-p", "settle=2 s", "-p", "hold=4 s")
    assert set(messages["outcome"]) == {"settled"} and found["answers_missing"] == 0
    # bytes: each side sends one request or one answer of 42 B for each consumer
    arp = messages["receiver"].n_unique() * 2 * 42
    whole = messages.height * (1699 + 8 + 20 * 34)
    assert whole <= found["utility_data"] * 1e6 <= whole + arp
    assert found["largest_frame"] <= 127


@pytest.mark.skipif(find_tool("libzmq.so.5") is None, reason="no libzmq5 (make setup installs it)")
def test_pgm_repairs_the_first_publication_too(place: Place) -> None:
    # no timer of a program runs in the silence before the hold
    settle = ("-p", "settle=12 s", "-p", "hold=58 s")
    found, messages = figures(place, "pgm", "-p", "network=constrained", "-p", "patience=120 s", *settle)
    assert messages["seq"].n_unique() >= 1 and messages["received_ns"].null_count() == 0
    assert found["largest_frame"] <= 127 and found["repairs"] > 0 and found["repair_requests"] > 0
    assert found["hop_there_p50"] > 30 and found["hop_there_lost"] > 0
