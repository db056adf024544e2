"""Half duplex: one transmitter for both directions, on the host, in virtual time and by the fake."""

from __future__ import annotations

import dataclasses
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
from orchestrator.lab import half_duplex
from orchestrator.lab.judgement import Seen
from orchestrator.lab.slack import settle
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.plan.netem import sized
from orchestrator.plan.render import render
from orchestrator.topology.loading import parse

RATE_BPS = 2_000_000
FLOOD = {"protocol": "udp", "rate": "4 Mbit/s", "size": "1000 B"}


def data(**link: Any) -> dict[str, Any]:
    wan = {"between": ["left", "right"], "duplex": "half", "both": {"rate": "2 Mbit/s"}, **link}
    return {
        "name": "half",
        "segments": {"left": {"subnet": "10.1.0.0/24"}, "right": {"subnet": "10.1.0.0/24"}},
        "nodes": {"a": {"segment": "left"}, "b": {"segment": "right"}},
        "links": {"wan": {key: value for key, value in wan.items() if value is not None}},
    }


def text(**link: Any) -> bytes:
    return json.dumps(data(**link)).encode()


MISTAKES = {
    "nics": ({"nics": {"a": "eth1", "b": "eth2"}}, "through NICs, each of which has a transmitter"),
    "one direction": ({"forward": {"rate": "1 Mbit/s"}, "both": None}, "given different impairments"),
    "no rate": ({"both": {"delay": "1 ms"}}, "shares a transmitter that has no rate"),
    "own link": ({"between": ["a", "left"]}, "is of a link between two segments"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused(name: str) -> None:
    link, rule = MISTAKES[name]
    with pytest.raises(TopologyError, match=rule):
        parse("half.yaml", text(**link))


def test_the_plan_says_it_and_names_what_it_needs() -> None:
    plan = make_plan(parse("half.yaml", text()))
    assert "half duplex: one transmitter for both directions" in render(plan)
    assert {"ifb", "mirred", "u32", "tbf"} <= needs_of(plan).kinds.keys()
    assert plan.links[0].forward.carrier == plan.links[0].reverse.carrier


def test_a_rate_that_was_not_offered_is_not_judged() -> None:
    """At 10 Gbit/s the machine is slower than the link, which is not the link's fault."""
    plan = make_plan(parse("half.yaml", text(both={"rate": "10 Gbit/s"})))
    apart_ns = 4000  # 1514 B: 3 Gbit/s of each direction
    count = 6000  # more than what passes before the rate holds
    seen = Seen(count, count, 0, 0, (1,) * count, tuple(range(0, count * apart_ns, apart_ns)))
    slacks = settle(plan.proof, kernel="uml", virtual=True, quiet=None)
    (line,) = half_duplex.judge(plan.links, {("wan", way): seen for way in ("forward", "reverse")}, slacks)
    assert line.verdict == "not judged" and "offered only" in line.reason


def test_a_small_mtu_is_the_shared_devices_too() -> None:
    narrow = data(both={"rate": "1 Mbit/s"})
    narrow["segments"] = {name: {**one, "mtu": 113} for name, one in narrow["segments"].items()}
    plan = make_plan(parse("half.yaml", json.dumps(narrow).encode()))
    lines = [line for step in plan.steps for line in step.text.splitlines()]
    assert any("type ifb" in line and "mtu 113" in line for line in lines)
    assert not any("addrgenmode" in line for line in lines), "no IPv6 below 1280 bytes"


LACKS = [k for k in ("ifb", "mirred", "u32", "tbf") if host_facts().lacks(k) is not None]
DRIVERS = [
    pytest.param("light", marks=[needs_light, pytest.mark.skipif(bool(LACKS), reason=f"needs {LACKS}")]),
    "fake",
]


@pytest.fixture(scope="module", params=DRIVERS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A served lab; afterwards nothing of it is left."""
    plan = make_plan(parse("half.yaml", text()))
    with served(plan, tmp_path_factory.mktemp(request.param), request.param) as running:
        yield running


def test_a_change_is_of_both_directions(lab: Running) -> None:
    call = Control(lab).call
    now = sized(dataclasses.replace(lab.plan.links[0].forward.impairment, rate_bps=1_000_000))
    changes = dataclasses.asdict(now)
    refused = call("link", link="wan", forward=changes)
    assert not refused["ok"] and "change both" in refused["error"]
    assert call("link", link="wan", forward=changes, reverse=changes)["ok"]
    read = call("inspect")["links"]["wan"]
    assert [read[side]["read"]["rate_bps"] for side in ("forward", "reverse")] == [1_000_000, 1_000_000]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twice the rate from either end, in virtual time, captured at the link's first end."""
    if why := kernel_missing():
        pytest.skip(why)
    wanted = data(both={"rate": "2 Mbit/s", "delay": "2 ms"})
    for node, other in (("a", "b"), ("b", "a")):
        software = {"sink": {"bulk": {"listen": 5201}}, "flood": {"bulk": {"to": other, **FLOOD}}}
        wanted["nodes"][node]["software"] = software
    wanted |= {"captures": {"wan": {"at": "link wan"}}, "run": {"hold": "6 s", "drain": "2 s"}}
    place = Place(tmp_path_factory.mktemp("half"))
    (place.cwd / "half.yaml").write_text(json.dumps(wanted))
    return place.run("--json", file="half.yaml").run_dir


@pytest.mark.uml
def test_both_directions_together_get_the_rate_of_one(run: Path) -> None:
    proof = json.loads((run / "proof.json").read_text())
    assert {j["verdict"] for j in proof} == {"holds"}
    (both,) = [j for j in proof if j["direction"] == "both"]
    assert both["realised"] == pytest.approx(RATE_BPS, rel=0.005)
    links = pl.read_parquet(run / "links.parquet").sort("t_ns")
    bps = {
        way: links.filter(direction=way)["bps"].slice(3, 4).mean() for way in ("forward", "reverse", "both")
    }
    assert bps["both"] == pytest.approx(RATE_BPS, rel=0.01)
    assert bps["forward"] + bps["reverse"] == pytest.approx(RATE_BPS, rel=0.01)  # type: ignore[operator]
    assert min(bps["forward"], bps["reverse"]) > RATE_BPS / 4  # type: ignore[type-var, operator]


@pytest.mark.uml
def test_a_capture_sees_each_packet_once(run: Path) -> None:
    """Seen twice, they would be twice the rate."""
    packets = pl.read_parquet(run / "packets" / "wan.parquet").sort("t_ns")
    begin = packets["t_ns"][0] + 3 * 10**9
    inside = packets.filter(pl.col("t_ns").is_between(begin, begin + 3 * 10**9, closed="left"))
    assert inside["wire_bytes"].sum() * 8 / 3 == pytest.approx(RATE_BPS, rel=0.01)
