"""Tests that topologies built in Python become files that `vnet` reads, with any texts and numbers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vnet
from orchestrator.language.source import read_document
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

SHIPPED = sorted((Path(__file__).parents[2] / "topologies").glob("*.yaml"))


def by_hand() -> vnet.Topology:
    return (
        vnet.Topology("pair", description="Two nodes: 20 ms")
        .parameter("delay", "duration", default=timedelta(milliseconds=20), help="one way")
        .segment("lan", "10.20.0.0/24")
        .node(
            "left",
            "lan",
            software={"asks": {"udp": {"to": "right", "push": {"size": "100 B", "rate": "5 /s"}}}},
        )
        .node("right", "lan", software={"takes": {"udp": {"listen": 9000}}})
        .link("wan", "left", "lan", forward={"delay": "${delay}"})
        .capture("right", "node right")
        .event("hold + 1 s", link_down="wan", for_="200 ms")
        .phases(hold="2 s", drain="1 s")
        .set(seed=7)
    )


def test_a_topology_by_hand_is_planned() -> None:
    topology = parse("pair.yaml", by_hand().yaml().encode())
    plan = make_plan(topology)
    assert (topology.seed, [node.name for node in plan.nodes]) == (7, ["left", "right"])
    assert topology.model.timeline[0].link_down == ["wan"]
    assert topology.parameters["delay"] == "20000 us"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_read_and_written_alike(path: Path) -> None:
    text = path.read_text()
    built = vnet.Topology.read(text)
    assert built.data == read_document(str(path), text.encode()).data
    assert vnet.Topology.read(built.yaml()) == built


scalars = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=30)
words = st.sampled_from(
    [
        "yes",
        "1e5",
        "0x1f",
        "1_000",
        "12:30",
        "null",
        "~",
        "=",
        "<<",
        "0o7",
        "- a",
        "a: b",
        "#",
        "${x}",
        " a ",
        "1.",
    ]
)
numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))
values: Any = st.recursive(
    scalars | words | numbers,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | words, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), values, max_size=4))
def test_whatever_it_holds_is_read_back(keys: dict[str, Any]) -> None:
    keys.pop("name", None)
    built = vnet.Topology("any").set(**{f"{key}_": value for key, value in keys.items()})
    assert read_document("any.yaml", built.yaml().encode()).data == built.data
    assert vnet.Topology.read(built.yaml()) == built


def test_what_cannot_stand_in_a_file_is_refused() -> None:
    topology = by_hand()
    with pytest.raises(vnet.TopologyError, match="there already"):
        topology.node("left")
    for wrong in (float("nan"), object(), {"x": [1j]}):
        with pytest.raises(vnet.TopologyError, match="a topology holds"):
            topology.set(seed=wrong)
    with pytest.raises(vnet.TopologyError, match="mapping"):
        vnet.Topology.read("- a")
    assert repr(topology).startswith("Topology('pair': 1 parameters, 1 segments, 2 nodes")
    assert topology.data["seed"] == 7
