"""Tests the whole lab process with the fake driver: files, events, end states, failures."""

from __future__ import annotations

import dataclasses
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lab_plans import MS, SECOND, access, make_plan, mqtt_plan, node, program
from lab_running import Control, Running

from capture.reduce import reduce_run
from contract.plan import (
    Delivery,
    Event,
    Flow,
    Guarantee,
    Impairment,
    Payload,
    Plan,
    Process,
    Rate,
    Session,
    Slot,
    Software,
)
from contract.plan.flows import Schedule

Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Running] = []

    def run(plan: Plan, *options: str) -> Running:
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Running(plan, directory, *options, driver="fake"))
        return made[-1]

    yield run
    for running in made:
        running.close()


def impaired(lab: str) -> Plan:
    nodes = (node(lab, 0, "alpha"), node(lab, 1, "beta", (program("echo", "sleep", "9"),)))
    wire = Impairment(delay_ns=20 * MS, jitter_ns=2 * MS, loss=0.05, rate_bps=2_000_000, limit_packets=1000)
    link = access(lab, "wire", nodes[0], wire, Impairment(delay_ns=5 * MS, limit_packets=1000))
    changed = dataclasses.asdict(Impairment(delay_ns=40 * MS, limit_packets=1000))
    events = (
        Event("hold", 100 * MS, "impair", ("wire",), {"forward": changed, "reverse": None}, "slower"),
        Event("hold", 200 * MS, "link-down", ("wire",)),
        Event("hold", 300 * MS, "link-up", ("wire",)),
        Event("hold", 400 * MS, "restart", ("beta",), {"software": "echo"}),
        Event("drain", 10 * MS, "run", ("alpha",), {"argv": ["hostname"]}),
    )
    return make_plan(lab, nodes, (link,), events)


def test_a_scenario_leaves_a_complete_run_directory(start: Start) -> None:
    running = start(mqtt_plan("faker"), "--scenario")
    assert running.finish() == 0, running.stderr
    manifest = running.manifest
    assert (manifest["state"], manifest["driver"], manifest["suspect"]) == ("complete", "fake", False)
    point = manifest["captures"]["point"]
    # The keys are the names of tcpdump's counts.
    assert point.keys() == {"packets", "received", "dropped_kernel", "dropped_interface"}
    assert point["packets"] == point["received"] > 0
    assert manifest["phases"]["hold"][1] - manifest["phases"]["hold"][0] == 1000 * MS
    records = (running.run_dir / "raw" / "messages.csv").read_text().splitlines()
    assert {line[0] for line in records} == {"S", "R", "C"}
    for name in ("nodes", "links", "host"):
        assert (running.run_dir / "raw" / f"{name}.csv").read_text().startswith("t_ns,")
    assert not running.state_dir.exists()
    phases = [e["phase"] for e in running.events if e["event"] == "phase"]
    order = [
        "create",
        "network",
        "configure",
        "impair",
        "prove",
        "software",
        "ramp",
        "hold",
        "drain",
        "collect",
    ]
    assert list(dict.fromkeys(phases)) == [*order, "teardown"]


def test_an_event_limits_the_cpu_of_nodes(start: Start) -> None:
    nodes = (node("limiter", 0, "alpha"), node("limiter", 1, "beta"))
    event = Event("hold", 10 * MS, "limit", ("beta",), {"cpu_limit_cores": 0.5}, "slower")
    running = start(make_plan("limiter", nodes, (), (event,)), "--scenario")
    assert running.finish() == 0, running.stderr
    limits = running.manifest["limits"]
    assert limits["beta"]["cpu_cores"] == 0.5 and "alpha" not in limits
    (record,) = map(json.loads, (running.run_dir / "raw" / "events.jsonl").read_text().splitlines())
    assert (record["action"], record["targets"], record["ok"]) == ("limit", ["beta"], True)


def flows_of_every_pattern() -> tuple[Flow, ...]:
    """Returns flows of every pattern from alpha: a push, a request and a stream in bursts of two, and a
    greedy transfer.
    """
    sure = Guarantee("sure", "nothing is lost", lossless=True)
    both, one = (Delivery("both", Guarantee("best", "nothing")),), (Delivery("one", sure),)
    steps = (Rate(0, 0.0), Rate(100 * MS, 20.0), Rate(400 * MS, 40.0))
    wanted = Schedule("own", steps, 1, burst=2)
    common = {"sender": "alpha", "payload": Payload("bytes", 100), "start_ns": 0, "stop_ns": 600 * MS}
    greedy = common | {"payload": Payload("bytes", 1448), "deliveries": one, "schedule": None}
    return (
        Flow("alpha.tell", "tell", "push", deliveries=one, schedule=wanted, **common),
        Flow(
            "alpha.ask",
            "ask",
            "request",
            deliveries=both,
            schedule=wanted,
            **common,
            reply=Payload("bytes", 50),
        ),
        Flow("alpha.feed", "feed", "stream", deliveries=both, schedule=wanted, **common),
        Flow("alpha.load", "load", "stream", **greedy),
    )


def test_flows_of_every_pattern_become_records_and_tables(start: Start) -> None:
    def role(name: str, **more: Any) -> Software:
        session = Session(name, 0, 2 * SECOND, **more)
        return Software("it", "client", "any", session=session)

    nodes = [node("any", 0, "alpha", (role("alpha"),))]
    nodes += [
        node("any", i, name, (role(name, listens=True),)) for i, name in enumerate(("beta", "gamma"), 1)
    ]
    owed = {"flows": flows_of_every_pattern(), "receivers": {"one": ("beta",), "both": ("beta", "gamma")}}
    running = start(make_plan("any", tuple(nodes), capture=True, **owed), "--scenario")
    assert running.finish() == 0, running.stderr
    assert running.manifest["warnings"] == []
    done = reduce_run(running.run_dir)
    assert done.warnings == []
    table = pl.read_parquet(running.run_dir / "messages.parquet")
    assert dict(table.group_by("name").len().iter_rows()) == {
        "alpha.tell": 2 * (5 + 7), "alpha.ask": 2 * 2 * (5 + 7), "alpha.feed": 2 * 2 * (5 + 7)
    }  # fmt: skip
    assert table["received_ns"].null_count() == 0
    answered = table.filter(pl.col("replied_ns").is_not_null())
    assert set(answered["name"]) == {"alpha.ask"} and set(answered["receiver"]) == {"beta", "gamma"}
    assert (answered["round_trip_ns"] > answered["latency_ns"]).all()
    transfers = pl.read_parquet(running.run_dir / "transfers.parquet")
    assert set(transfers["endpoint"]) == {"alpha", "beta"} and set(transfers["name"]) == {"alpha.load"}
    packets = pl.read_parquet(running.run_dir / "packets" / "point.parquet")
    assert set(packets["protocol"]) == {"tcp", "udp"} and packets.height == 3 * 24


def test_events_are_applied_in_time_and_recorded(start: Start) -> None:
    running = start(impaired("timed"), "--scenario")
    assert running.finish() == 0, running.events[-3:]
    lines = (running.run_dir / "raw" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [e["action"] for e in events] == ["impair", "link-down", "link-up", "restart", "run"]
    assert all(e["ok"] and e["t_ns"] >= e["planned_ns"] for e in events)
    assert running.manifest["deadlines_missed"] == []


def test_every_quantity_is_proven(start: Start) -> None:
    running = start(impaired("proven"), "--scenario")
    assert running.finish() == 0
    proof = json.loads((running.run_dir / "proof.json").read_text())
    forward = {p["quantity"]: p["verdict"] for p in proof if p["direction"] == "forward"}
    assert forward == dict.fromkeys(("reach", "delay", "jitter", "loss", "rate"), "holds"), proof


def test_slots_are_kept_and_proven(start: Start) -> None:
    """Shows that the proof measures slots with even intervals, and slots with intervals from a table in
    addition to a jitter of the same table.
    """
    even = Impairment(delay_ns=5 * MS, slot=Slot(2 * MS, 10 * MS), limit_packets=1000)
    beats = Slot(4 * MS, 16 * MS, table="own", mean_ns=10 * MS, jitter_ns=6 * MS)
    own = Impairment(delay_ns=8 * MS, jitter_ns=MS, distribution="own", slot=beats, limit_packets=1000)
    alpha = node("slots", 0, "alpha")
    tables = {"own": (-8192, -8192, 0, 8192)}
    running = start(make_plan("slots", (alpha,), (access("slots", "wire", alpha, even, own),), tables=tables))
    running.await_event("ready")
    proof = json.loads((running.run_dir / "proof.json").read_text())
    delays = {p["direction"]: p for p in proof if p["quantity"] == "delay"}
    assert {p["verdict"] for p in proof} == {"holds"}, proof
    assert delays["forward"]["expected"] == 3 / 8 * 11 * MS + 5 / 8 * 7.5 * MS
    assert delays["reverse"]["expected"] == (2 * (7.75 + 8.5) + 10 + 16) / 4 * MS


def test_an_event_that_cannot_be_applied_fails_the_run(start: Start) -> None:
    broken = {"forward": dataclasses.asdict(Impairment(delay_ns=MS, limit_packets=10)), "reverse": None}
    events = (Event("hold", 0, "impair", ("absent",), broken),)
    running = start(make_plan("broken", (node("broken", 0, "alpha"),), events=events), "--scenario")
    assert running.finish() == 1
    assert "link absent: not in lab broken" in running.manifest["error"]
    assert json.loads((running.run_dir / "raw" / "events.jsonl").read_text())["ok"] is False


def test_a_step_that_the_tool_refuses_fails_the_run(start: Start) -> None:
    plan = make_plan("refused", (node("refused", 0, "alpha"),))
    bad = dataclasses.replace(plan.steps[-1], text="link set dev absent up\n")
    running = start(dataclasses.replace(plan, steps=(*plan.steps, bad)), "--scenario")
    assert running.finish() == 1
    assert 'Cannot find device "absent"' in running.manifest["error"]
    assert running.manifest["state"] == "failed"


def test_a_setting_that_did_not_take_names_place_asked_and_read(start: Start) -> None:
    plan = make_plan("mtu", (node("mtu", 0, "alpha"),))
    steps = tuple(dataclasses.replace(s, text=s.text.replace("mtu 1500", "mtu 1400")) for s in plan.steps)
    running = start(dataclasses.replace(plan, steps=steps), "--scenario")
    assert running.finish() == 1
    assert "nodes.alpha.alpha.mtu: requested 1500, read back 1400" in running.manifest["error"]


def test_the_end_state_that_the_file_expects_is_checked(start: Start) -> None:
    lasting = Software("once", "utility", process=Process(("true",), expect="running"))
    plan = make_plan(
        "ends",
        (node("ends", 0, "alpha", (lasting,)),),
        events=(Event("hold", 0, "stop", ("alpha",), {"software": "once"}),),
    )
    running = start(plan, "--scenario")
    assert running.finish() == 0
    assert running.manifest["warnings"] == [], "stopped by the timeline is as planned"


def test_a_command_of_the_timeline_that_fails_is_told_once(start: Start) -> None:
    labels = {"false": "run false", "true": "run true"}
    events = tuple(
        Event("hold", 0, "run", ("alpha", "beta"), {"argv": [program]}, label)
        for program, label in labels.items()
    )
    running = start(
        make_plan("fails", (node("fails", 0, "alpha"), node("fails", 1, "beta")), events=events), "--scenario"
    )
    assert running.finish() == 0
    (warning,) = running.manifest["warnings"]
    assert (warning["code"], warning["suspect"]) == ("command-failed", True)
    assert warning["text"] == "timeline: run false: failed on alpha, if not on more: status 1"


def test_a_second_lab_of_the_name_is_refused_and_the_first_goes_on(start: Start, tmp_path: Path) -> None:
    plan = make_plan("twice", (node("twice", 0, "alpha"),))
    first = start(plan)
    first.await_event("ready")
    directory = tmp_path / "second"
    directory.mkdir()
    second = Running(plan, directory, driver="fake", state_root=first.state_root)
    assert second.finish() == 1
    text = next(e["text"] for e in second.events if e["event"] == "error")
    assert (
        f"lab twice: the name is in use by process {first.process.pid}" in text
        and "--lab" in text
        and "vnet down" not in text
    )
    assert Control(first).call("status")["ready"] is True


def test_down_and_sigint_end_a_served_lab(start: Start) -> None:
    for end in ("down", "signal"):
        running = start(make_plan(f"served-{end}", (node(f"served-{end}", 0, "alpha"),)))
        running.await_event("ready")
        if end == "down":
            assert Control(running).call("down")["ok"]
        else:
            running.await_event("phase", text="serving until `vnet down`")
            running.process.send_signal(signal.SIGINT)
        assert running.finish() == 0
        assert running.manifest["state"] == "complete"
        assert not running.state_dir.exists()


def test_what_is_not_a_plan_is_refused(start: Start, tmp_path: Path) -> None:
    running = start(
        dataclasses.replace(make_plan("old", (node("old", 0, "alpha"),)), format=99), "--scenario"
    )
    assert running.finish() == 1
    assert "plan format 99: this program reads 2" in running.events[0]["text"]


def test_requests_that_are_wrong_get_an_answer(start: Start) -> None:
    running = start(impaired("asked"))
    running.await_event("ready")
    control = Control(running)
    for op, fields, words in [
        ("nonsense", {}, "no such operation"),
        ("exec", {"node": "gamma", "argv": ["true"]}, "node gamma: not in lab asked"),
        ("link", {"link": "wire", "forward": {"dely_ns": 1}}, "no such quantity: dely_ns"),
        ("link", {"link": "wire", "forward": {"loss": 1.5}}, "not between 0 and 1"),
        ("set", {"nodes": ["alpha"], "colour": 1}, "no such setting: colour"),
        ("node", {"action": "explode", "nodes": ["alpha"]}, "not one of start, stop, restart"),
        ("remove", {"nodes": []}, "name at least one node"),
        ("add", {"node": {"name": 3}}, "not of the form"),
        ("input", {"target": 77, "data": ""}, "no running command has id 77"),
    ]:
        answer = control.call(op, **fields)
        assert answer["ok"] is False and words in answer["error"], (op, answer)
    assert control.call("link", link="wire", forward={"delay_ns": 30 * MS})["forward"]["delay_ns"] == 30 * MS
    read = control.call("inspect")["links"]["wire"]["forward"]["read"]
    assert (read["delay_ns"], read["loss"]) == (30 * MS, 0.05), "other fields stay"


def test_the_link_of_an_added_node_is_there_proven_and_changed_like_any_other(start: Start) -> None:
    running = start(impaired("grows"))
    running.await_event("ready")
    control = Control(running)
    new = node("grows", 5, "gamma")
    wire = access("grows", "wire-gamma", new, Impairment(delay_ns=7 * MS, limit_packets=50), Impairment())
    plan = make_plan("grows", (new,), (wire,))
    steps = [dataclasses.asdict(s) for s in plan.steps[1:]]  # the bridge exists already
    request = {"node": dataclasses.asdict(new), "steps": steps, "links": [dataclasses.asdict(wire)]}
    assert control.call("add", **request)["ok"], running.stderr
    link = control.call("inspect")["links"]["wire-gamma"]
    assert link["a"] == "gamma" and link["forward"]["read"]["delay_ns"] == 7 * MS
    changed = control.call("link", link="wire-gamma", forward={"delay_ns": 9 * MS})
    assert changed["forward"]["delay_ns"] == 9 * MS
    proof = json.loads((running.run_dir / "proof.json").read_text())
    assert {p["link"] for p in proof} == {"wire", "wire-gamma"}
    assert [p["verdict"] for p in proof if p["link"] == "wire-gamma" and p["quantity"] == "delay"] == [
        "holds"
    ]
    assert control.call("status")["phase"] == "hold"
    twice = control.call("add", **{**request, "node": dataclasses.asdict(node("grows", 6, "delta"))})
    assert "link wire-gamma: exists already" in twice["error"]
    assert control.call("remove", nodes=["gamma"])["ok"]
    assert "wire-gamma" not in control.call("inspect")["links"]
    assert "link wire-gamma: not in lab" in control.call("link", link="wire-gamma", down=True)["error"]
