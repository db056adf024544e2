"""Tests tagged interfaces and the marks that software requests, from the topology file to the queue that
classifies by them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lab_running import Control, Running, needs_light, served
from virtual_place import Place, kernel_missing

from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.needs import needs_of
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

MS = 10**6
PUSH = {"size": "100 B", "rate": "20 /s"}


def data(**changes: Any) -> dict[str, Any]:
    """Returns a topology with an alarm and a flood through strict priority, and MQTT in the middle class."""
    meters = {"dscp": "AF41", "limit": 20}
    queue = {"prio": {"alarms": {"pcp": 6, "limit": 20}, "meters": meters, "rest": {"limit": 50}}}
    flood = {"protocol": "udp", "rate": "4 Mbit/s", "size": "1000 B"}
    publish = {"topic": "t", "qos": 1, "rate": "10 /s"}
    sink = {"messages": {"udp": {"listen": 9000}}, "files": {"bulk": {"listen": 5201}}}
    found: dict[str, Any] = {
        "name": "tags",
        "segments": {"left": {"subnet": "10.1.0.0/24"}, "right": {"subnet": "10.1.0.0/24"}},
        "nodes": {
            "centre": {
                "segment": "right", "vlan": 5,
                "software": {**sink, "mosquitto": {"broker": "mosquitto", "reflect_dscp": True}},
            },
            "field": {
                "segment": "left", "vlan": {"left": 5},
                "software": {
                    "alarms": {"udp": {"to": "centre", "pcp": 6, "push": PUSH}},
                    "flood": {"bulk": {"to": "centre", **flood}},
                    "meter": {"mqtt": {"broker": "centre", "dscp": "AF41", "publish": publish}},
                },
            },
        },
        "links": {"wan": {"between": ["left", "right"], "both": {"rate": "2 Mbit/s", "queue": queue}}},
        "run": {"hold": "4 s", "drain": "2 s"},
    }  # fmt: skip
    for path, value in changes.items():
        *above, last = path.split("__")
        part = found
        for key in above:
            part = part[key]
        part[last] = value
    return found


UDP = "nodes__field__software__alarms__udp__pcp"
NEAR, FAR = "nodes__field__vlan", "nodes__centre__vlan"
MISTAKES = {
    "no tag": ({NEAR: None, FAR: None}, "this node's frames have none; write `vlan:`"),
    "no band": ({UDP: 3}, "no queue of a link serves it; their bands name PCP: 6; write `queue: {prio:"),
    "network control": ({UDP: 7}, "which a program may not ask of its socket"),
    "another VLAN": ({FAR: 6}, "with centre, which has VLAN 6: they cannot hear each other"),
    "one without": ({FAR: None}, "which has no `vlan`: they cannot hear each other"),
    "no VLAN": ({FAR: 4095}, "is no VLAN; write a number from 1 to 4094"),
    "elsewhere": ({NEAR: {"right": 5}}, "field is not on this segment; write one of its own: left"),
    "vm": ({"nodes__centre__kind": "vm"}, "a virtual machine makes its tagged interfaces itself"),
    "mqtt": ({"nodes__field__software__meter__mqtt__dscp": "EF"}, "no queue of a link serves it"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused(name: str) -> None:
    changes, rule = MISTAKES[name]
    with pytest.raises(TopologyError) as caught:
        parse("tags.yaml", json.dumps(data(**changes)).encode())
    assert rule in str(caught.value)


LACKS = [k for k in needs_of(make_plan(parse("tags.yaml", json.dumps(data()).encode()))).kinds
         if host_facts().lacks(k) is not None]  # fmt: skip
DRIVERS = [
    pytest.param("light", marks=[needs_light, pytest.mark.skipif(bool(LACKS), reason=f"needs {LACKS}")]),
    "fake",
]


@pytest.fixture(params=DRIVERS)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """Yields a lab of nodes without software: only tags, also on kernels without strict priority."""
    bare = data(links={"wan": {"between": ["left", "right"]}})
    for node in bare["nodes"].values():
        del node["software"]
    del bare["run"]
    with served(make_plan(parse("tags.yaml", json.dumps(bare).encode())), tmp_path, request.param) as running:
        yield running


def test_a_tagged_interface_has_the_address(lab: Running) -> None:
    """Shows that the tagged interface, read back from the node's agent, has the node's address."""
    call = Control(lab).call
    (card,) = call("inspect")["nodes"]["field"]["interfaces"]
    assert (card["name"], card["address"]) == ("eth0.5", "10.1.0.2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run directory in virtual time with a flood of twice the link's rate."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("tags"))
    (place.cwd / "tags.yaml").write_text(
        json.dumps(data(captures={"wan": {"at": "link wan", "snaplen": 60}}))
    )
    return place.run("--json", file="tags.yaml").run_dir


@pytest.mark.uml
def test_frames_carry_the_tag(run: Path) -> None:
    packets = pl.read_parquet(run / "packets" / "wan.parquet").filter(pl.col("protocol").is_not_null())
    assert packets["vlan"].unique().to_list() == [5]


@pytest.mark.uml
def test_the_priority_of_a_tag_goes_first(run: Path) -> None:
    """Shows that a message with priority waits at most for the frame being sent and one in the token bucket,
    4.2 ms each, and that none is lost.
    """
    messages = pl.read_parquet(run / "messages.parquet").filter(pl.col("class") == "field.alarms")
    assert len(messages) > 50 and messages["received_ns"].null_count() == 0
    late = (messages["received_ns"] - messages["scheduled_ns"]).max()
    assert isinstance(late, int) and late < 12 * MS


@pytest.mark.uml
def test_mqtt_is_marked_both_ways(run: Path) -> None:
    """Shows that both directions of MQTT are marked: the client's by the agent, the broker's by its kernel
    (tcp_reflect_tos).
    """
    classes = pl.read_parquet(run / "links.parquet").filter(pl.col("class") == "meters")
    sent = {way: rows["packets"].max() for (way,), rows in classes.group_by("direction")}
    assert sent["forward"] > 30 and sent["reverse"] > 30
