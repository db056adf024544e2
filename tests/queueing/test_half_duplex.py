"""Tests half duplex (one transmitter for both directions) on the host's kernel, in virtual time and with the
fake driver.
"""

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

from contract.codec import to_json
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.needs import needs_of
from orchestrator.lab import half_duplex
from orchestrator.lab.clock import SECOND
from orchestrator.lab.judgement import Seen
from orchestrator.lab.probes import transmission_ns
from orchestrator.lab.tolerance import settle
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.plan.clone import clones
from orchestrator.plan.netem import sized
from orchestrator.plan.paths import Paths
from orchestrator.plan.render import render
from orchestrator.topology.loading import parse

RATE = {"rate": "2 Mbit/s", "backpressure": True}  # settings for machines whose kernel has no netem
RATE_BPS = 2_000_000
FLOOD = {"protocol": "udp", "rate": "4 Mbit/s", "size": "1000 B"}
LINKS = ("wan", "own", "wire", "field")  # a link of segments, of a node, of two nodes; a segment's medium
PAIRS = (("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"))  # sender and receiver over each of them


def data(**link: Any) -> dict[str, Any]:
    wan = {"between": ["left", "right"], "duplex": "half", "both": RATE, **link}
    return {
        "name": "half",
        "segments": {"left": {"subnet": "10.1.0.0/24"}, "right": {"subnet": "10.1.0.0/24"}},
        "nodes": {"a": {"segment": "left"}, "b": {"segment": "right"}},
        "links": {"wan": {key: value for key, value in wan.items() if value is not None}},
    }


def everywhere(both: dict[str, str]) -> dict[str, Any]:
    """Returns a topology with every kind of half-duplex link, each with nodes of its own; `i`
    only listens.
    """
    found = data(both=both)
    field = {"subnet": "10.3.0.0/24", "duplex": "half", "medium": both}
    found["segments"] |= {"lan": {"subnet": "10.2.0.0/24"}, "field": field}
    found["nodes"] |= {name: {"segment": "lan"} for name in "cd"} | {"e": {}, "f": {}}
    found["nodes"] |= {name: {"segment": "field"} for name in "ghi"}
    found["links"] |= {
        "own": {"between": ["c", "lan"], "duplex": "half", "both": both},
        "wire": {"between": ["e", "f"], "duplex": "half", "both": both},
    }
    return found


def text(**link: Any) -> bytes:
    return json.dumps(data(**link)).encode()


MISTAKES = {
    "nics": ({"nics": {"a": "eth1", "b": "eth2"}}, "through NICs, each of which has a transmitter"),
    "one direction": ({"forward": {"rate": "1 Mbit/s"}, "both": None}, "given different impairments"),
    "no rate": ({"both": {"delay": "1 ms"}}, "shares a transmitter that has no rate"),
}
MEDIA = {
    "no rate": ({"duplex": "half"}, "shares a transmitter that has no rate; write `medium: {rate: ...}`"),
    "full duplex": ({"medium": {"delay": "1 ms"}}, "this one is full duplex; write `duplex: half`"),
    "each direction its own": ({"medium": {"profile": "dsl"}}, "a medium has one for all; write its figures"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused(name: str) -> None:
    link, rule = MISTAKES[name]
    with pytest.raises(TopologyError, match=rule):
        parse("half.yaml", text(**link))


@pytest.mark.parametrize("name", MEDIA)
def test_a_mistake_of_a_medium_is_refused(name: str) -> None:
    segment, rule = MEDIA[name]
    wrong = data()
    wrong["segments"]["left"] |= segment
    with pytest.raises(TopologyError) as caught:
        parse("half.yaml", json.dumps(wrong).encode())
    assert rule in str(caught.value)


def test_no_half_duplex_beside_a_nic() -> None:
    """Shows that half duplex is refused at a NIC, whose cable is full duplex."""
    wrong = everywhere(RATE)
    wrong["nodes"]["c"] |= {"nic": "eth1"}
    wrong["nodes"]["g"] |= {"nic": "eth2"}
    with pytest.raises(TopologyError) as caught:
        parse("half.yaml", json.dumps(wrong).encode())
    said = [str(p) for p in caught.value.problems if "has a transmitter of its own" in p.rule]
    assert [line.split(": ")[1] for line in said] == ["links.own.duplex", "segments.field.duplex"]


def test_a_medium_takes_a_profile_with_its_duplex() -> None:
    """Shows that a medium takes its duplex from the profile (ideal, constrained), as a link does."""
    found = data(duplex="full")
    for name, half in (("ideal", False), ("constrained", True)):
        found["segments"]["left"]["medium"] = {"profile": name}
        plan = make_plan(parse("half.yaml", json.dumps(found).encode()))
        assert [link.half_duplex for link in plan.links if link.kind == "medium"] == [True] * half


def test_the_plan_says_it_and_names_what_it_needs() -> None:
    plan = make_plan(parse("half.yaml", json.dumps(everywhere(RATE)).encode()))
    said = render(plan)
    assert "half duplex: one transmitter for both directions" in said
    assert "one transmitter for all members" in said
    assert {"ifb", "mirred", "u32", "tbf"} <= needs_of(plan).kinds.keys()
    assert all(link.forward.carrier == link.reverse.carrier for link in plan.links)
    assert len({link.forward.carrier for link in plan.links}) == len(LINKS)


def test_a_frame_passes_the_medium_of_each_segment_that_it_comes_to() -> None:
    wanted = everywhere({"rate": "2 Mbit/s", "delay": "10 ms"})
    wanted["links"]["more"] = {"between": ["right", "field"], "both": {"delay": "1 ms"}}
    wanted["segments"]["field"]["subnet"] = "10.1.0.0/24"
    plan = make_plan(parse("half.yaml", json.dumps(wanted).encode()))
    paths = Paths.of(plan)
    delays = {
        pair: paths.between(*pair).delay_ns(0) // 10**6 for pair in (("g", "h"), ("a", "g"), ("g", "b"))
    }  # type: ignore[union-attr]
    assert delays == {("g", "h"): 10, ("a", "g"): 10 + 1 + 10, ("g", "b"): 10 + 1}


def test_a_rate_that_was_not_offered_cannot_be_told() -> None:
    """Shows the verdict "cannot tell" for a rate of 10 Gbit/s, at which the machine cannot send frames."""
    plan = make_plan(parse("half.yaml", text(both={"rate": "10 Gbit/s"})))
    apart_ns = 4000  # 1514 B every 4 us: 3 Gbit/s in each direction
    count = 6000  # more frames than pass before the rate limit has an effect
    seen = Seen(count, count, 0, 0, (1,) * count, tuple(range(0, count * apart_ns, apart_ns)))
    tolerances = settle(plan.proof, kernel="uml", virtual=True, quiet=None)
    (line,) = half_duplex.judge(
        plan.links, {("wan", way): seen for way in ("forward", "reverse")}, tolerances
    )
    assert line.verdict == "cannot tell" and "offered only" in line.reason


def test_a_small_mtu_is_the_shared_devices_too() -> None:
    narrow = data(both={"rate": "1 Mbit/s"})
    narrow["segments"] = {name: {**one, "mtu": 113} for name, one in narrow["segments"].items()}
    plan = make_plan(parse("half.yaml", json.dumps(narrow).encode()))
    lines = [line for step in plan.steps for line in step.text.splitlines()]
    assert any("type ifb" in line and "mtu 113" in line for line in lines)
    assert not any("addrgenmode" in line for line in lines), "no IPv6 below 1280 bytes"


@pytest.mark.parametrize("rate", ["106 kbit/s", "2 Mbit/s", "50 Mbit/s"])
def test_trains_are_long_enough_for_the_tolerance(rate: str) -> None:
    """Shows that the planned trains are long enough to measure the rate over a medium that sends their frames
    one after the other.
    """
    plan = make_plan(parse("half.yaml", text(both={"rate": rate})))
    tolerances = settle(plan.proof, kernel="uml", virtual=True, quiet=None)
    trains = half_duplex.probes(plan.links, tolerances, 1200 * SECOND)
    asked = plan.links[0].forward.impairment
    apart = transmission_ns(trains[0]["size"], asked)
    seen = {}
    for first, train in enumerate(trains):
        arrivals = tuple((2 * frame + first + 1) * apart for frame in range(train["count"]))
        delays = tuple(at - frame * train["interval_ns"] for frame, at in enumerate(arrivals))
        seen["wan", train["direction"]] = Seen(len(arrivals), len(arrivals), 0, 0, delays, arrivals)
    (line,) = half_duplex.judge(plan.links, seen, tolerances)
    assert line.verdict == "holds", line
    assert (line.high - line.low) / 2 <= line.tolerance / 3  # type: ignore[operator]


LACKS = [k for k in ("ifb", "mirred", "u32", "tbf") if host_facts().lacks(k) is not None]
DRIVERS = [
    pytest.param("light", marks=[needs_light, pytest.mark.skipif(bool(LACKS), reason=f"needs {LACKS}")]),
    "fake",
]


@pytest.fixture(scope="module", params=DRIVERS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yields a lab that serves; asserts afterwards that nothing of it is left."""
    plan = make_plan(parse("half.yaml", json.dumps(everywhere(RATE)).encode()))
    with served(plan, tmp_path_factory.mktemp(request.param), request.param) as running:
        yield running


@pytest.mark.parametrize("link", LINKS)
def test_a_change_is_of_both_directions(lab: Running, link: str) -> None:
    call = Control(lab).call
    wanted = next(one.forward.impairment for one in lab.plan.links if one.name == link)
    now = sized(dataclasses.replace(wanted, rate_bps=1_000_000))
    changes = dataclasses.asdict(now)
    refused = call("link", link=link, forward=changes)
    assert not refused["ok"] and "change both" in refused["error"]
    assert call("link", link=link, forward=changes, reverse=changes)["ok"]
    read = call("inspect")["links"][link]
    assert [read[side]["read"]["rate_bps"] for side in ("forward", "reverse")] == [1_000_000, 1_000_000]


@pytest.mark.parametrize("link", LINKS)
def test_each_goes_down_and_comes_up(lab: Running, link: str) -> None:
    call = Control(lab).call
    assert call("link", link=link, down=True)["down"]
    assert not call("link", link=link, up=True)["down"]


@pytest.mark.parametrize("like", ["c", "i"])
def test_a_node_that_is_added_has_its_own_or_shares_the_medium(lab: Running, like: str) -> None:
    """Shows that a clone gets a half-duplex link of its own, or shares the medium, also after it was removed
    and added again.
    """
    call = Control(lab).call
    (clone,) = clones(lab.plan, call("inspect")["nodes"], like, 1)
    steps = [json.loads(to_json(step)) for step in clone.steps]
    links = [json.loads(to_json(link)) for link in clone.links]
    assert [link["name"] for link in links] == (["own-c2"] if like == "c" else [])
    added = call("add", node=json.loads(to_json(clone.node)), steps=steps, links=links)
    assert added["ok"], added
    assert call("remove", nodes=[clone.node.name])["ok"]
    again = call("add", node=json.loads(to_json(clone.node)), steps=steps, links=links)
    assert again["ok"], f"something of the first stayed: {again}"
    assert call("remove", nodes=[clone.node.name])["ok"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run directory in virtual time in which both ends of each link send twice its rate."""
    if why := kernel_missing():
        pytest.skip(why)
    wanted = everywhere({"rate": "2 Mbit/s", "delay": "2 ms"})
    for one, two in PAIRS:
        for node, other in ((one, two), (two, one)):
            software = {"sink": {"bulk": {"listen": 5201}}, "flood": {"bulk": {"to": other, **FLOOD}}}
            wanted["nodes"][node]["software"] = software
    points = {"wan": "link wan", "own": "link own", "wire": "link wire", "field": "segment field"}
    wanted |= {"captures": {name: {"at": at, "snaplen": 60} for name, at in points.items()}}
    wanted |= {"run": {"hold": "5 s", "drain": "2 s"}}
    place = Place(tmp_path_factory.mktemp("half"))
    (place.cwd / "half.yaml").write_text(json.dumps(wanted))
    return place.run("--json", file="half.yaml").run_dir


@pytest.mark.uml
def test_all_together_get_the_rate_of_one(run: Path) -> None:
    proof = json.loads((run / "proof.json").read_text())
    assert {j["verdict"] for j in proof} == {"holds"}
    both = {j["link"]: j["measured"] for j in proof if j["direction"] == "both"}
    assert both == {name: pytest.approx(RATE_BPS, rel=0.005) for name in LINKS}


@pytest.mark.uml
@pytest.mark.parametrize("link", LINKS)
def test_two_floods_share_the_rate_of_one(run: Path, link: str) -> None:
    links = pl.read_parquet(run / "links.parquet").filter(link=link).sort("t_ns")
    bps = {
        str(way): rows["bps"].slice(4, 3).mean()
        for (way,), rows in links.group_by("direction", maintain_order=True)
    }
    both = bps.pop("both")
    assert both == pytest.approx(RATE_BPS, rel=0.01)
    if link == "field":  # a medium has no directions
        assert not bps
        return
    assert sum(bps.values()) == pytest.approx(RATE_BPS, rel=0.01)  # type: ignore[arg-type]
    assert min(bps.values()) > RATE_BPS / 4  # type: ignore[type-var, operator]


@pytest.mark.uml
@pytest.mark.parametrize("link", LINKS)
def test_a_capture_sees_each_packet_once(run: Path, link: str) -> None:
    """Shows that the captured bytes equal the rate: twice the rate would mean packets seen twice, four times
    a capture before the medium.
    """
    packets = pl.read_parquet(run / "packets" / f"{link}.parquet").sort("t_ns")
    begin = packets["t_ns"][0] + 10**9
    inside = packets.filter(pl.col("t_ns").is_between(begin, begin + 2 * 10**9, closed="left"))
    assert inside["wire_bytes"].sum() * 8 / 2 == pytest.approx(RATE_BPS, rel=0.01)
