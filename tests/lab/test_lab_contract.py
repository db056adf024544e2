"""Tests that all drivers fulfil one contract: each gives the same answers for the same lab."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_plans import machine, make_plan, node, on_host, own, program
from lab_running import Control, Running, needs_light, needs_vm, served

from contract.codec import to_json
from contract.plan import Plan, Probe
from orchestrator.lab import namespaces
from orchestrator.lab.drivers import DRIVERS

LAB = own("contract")


NEEDS = {"light": needs_light, "vm": needs_vm, "hosts": needs_light}


def plan(driver: str) -> Plan:
    """Returns a plan of three nodes, one of them with a program that reports when it is ready."""
    daemon = program("daemon", "sh", "-c", "echo up; exec sleep 60", ready=Probe(log="up"))
    nodes = (node(LAB, 0, "alpha", (daemon,)), node(LAB, 1, "beta"), node(LAB, 2, "gamma"))
    made = make_plan(LAB, tuple(machine(n) for n in nodes) if driver == "vm" else nodes)
    return on_host(made, "one") if driver == "hosts" else made


@pytest.fixture(scope="module", params=[pytest.param(d, marks=NEEDS.get(d, ())) for d in DRIVERS])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yields a lab that serves; asserts afterwards that nothing of it is left."""
    with served(plan(request.param), tmp_path_factory.mktemp(request.param), request.param) as running:
        yield running


@pytest.fixture
def call(lab: Running) -> Callable[..., dict[str, Any]]:
    return Control(lab).call


def run(lab: Running, name: str, *argv: str) -> tuple[int, str]:
    control = Control(lab)
    answer, events = control.answer(control.send("exec", node=name, argv=list(argv), env={}, tty=None))
    assert answer["ok"], answer
    text = b"".join(base64.b64decode(e["data"]) for e in events if e["event"] == "output")
    return answer["status"], text.decode()


def test_nodes_are_up_with_their_addresses_and_programs(call: Callable[..., dict[str, Any]]) -> None:
    nodes = call("inspect")["nodes"]
    assert [nodes[n]["state"] for n in ("alpha", "beta", "gamma")] == ["running"] * 3
    assert [nodes[n]["interfaces"][0]["address"] for n in nodes] == ["10.9.0.1", "10.9.0.2", "10.9.0.3"]
    assert nodes["alpha"]["software"]["daemon"]["state"] == "ready"
    assert len({nodes[n]["pid"] for n in nodes}) == 3


def test_commands_run_in_their_node_and_give_output_and_status(lab: Running) -> None:
    assert run(lab, "beta", "hostname") == (0, "beta\n")
    assert run(lab, "gamma", "echo", "a", "b") == (0, "a b\n")
    assert run(lab, "gamma", "false")[0] == 1


def test_software_stops_starts_and_refuses_to_start_twice(call: Callable[..., dict[str, Any]]) -> None:
    def state() -> str:
        return str(call("inspect")["nodes"]["alpha"]["software"]["daemon"]["state"])

    assert call("software", action="stop", nodes=["alpha"], software="daemon")["ok"]
    assert state() == "exited"
    assert call("software", action="start", nodes=["alpha"], software="daemon")["ok"]
    assert state() == "ready"
    again = call("software", action="start", nodes=["alpha"], software="daemon")
    assert not again["ok"] and "runs already" in again["error"]
    assert call("software", action="restart", nodes=["alpha"])["ok"]
    assert state() == "ready"


def test_software_freezes_and_thaws_and_a_frozen_one_stops_in_order(
    call: Callable[..., dict[str, Any]],
) -> None:
    def state() -> str:
        return str(call("inspect")["nodes"]["alpha"]["software"]["daemon"]["state"])

    for action in ("freeze", "freeze", "thaw", "thaw", "freeze"):  # repeating an action changes nothing
        assert call("software", action=action, nodes=["alpha"], software="daemon")["ok"]
    assert state() == "ready", "it lives"
    assert call("software", action="stop", nodes=["alpha"], software="daemon")["ok"]
    assert state() == "exited"
    assert call("software", action="start", nodes=["alpha"], software="daemon")["ok"]
    wrong = call("software", action="freeze", nodes=["alpha"], software="deamon")
    assert not wrong["ok"]


def test_a_node_stops_and_comes_back(call: Callable[..., dict[str, Any]]) -> None:
    assert call("node", action="stop", nodes=["alpha"])["nodes"] == {"alpha": "stopped"}
    assert call("inspect")["nodes"]["alpha"]["software"]["daemon"]["state"] == "exited"
    assert call("node", action="start", nodes=["alpha"])["nodes"] == {"alpha": "running"}
    assert call("inspect")["nodes"]["alpha"]["software"]["daemon"]["state"] == "ready"


def test_settings_are_read_back(lab: Running, call: Callable[..., dict[str, Any]]) -> None:
    assert call("set", nodes=["beta", "gamma"], mtu=1280)["nodes"]["gamma"]["mtu"] == {"eth0": 1280}
    assert call("set", nodes=["gamma"], hostname="gamma-two")["nodes"]["gamma"]["hostname"] == "gamma-two"
    assert run(lab, "gamma", "hostname") == (0, "gamma-two\n")
    assert call("set", nodes=["beta", "gamma"], mtu=1500)["ok"]


def test_a_node_is_added_and_removed(lab: Running, call: Callable[..., dict[str, Any]]) -> None:
    import json

    extra = node(LAB, 9, "delta", (program("idle", "sleep", "60"),))
    extra = machine(extra) if lab.plan.nodes[0].vm else extra
    grown = make_plan(LAB, (*lab.plan.nodes, extra))
    line = [ln for ln in grown.steps[-1].text.splitlines() if "delta" in ln]
    step = {"tool": "ip", "netns": grown.core_netns, "text": "\n".join(line) + "\n", "reason": "delta"}
    assert call("add", node=json.loads(to_json(extra)), steps=[step])["ok"]
    assert run(lab, "delta", "hostname") == (0, "delta\n")
    assert not call("add", node=json.loads(to_json(extra)), steps=[step])["ok"], "the name is taken"
    assert call("remove", nodes=["delta"])["removed"] == ["delta"]
    assert "delta" not in call("inspect")["nodes"]
    assert not call("exec", node="delta", argv=["true"], env={}, tty=None)["ok"]
    assert f"vnet-{LAB}.delta" not in [n.name for n in namespaces.of(LAB)]


def test_many_commands_at_once_keep_their_own_answers(lab: Running) -> None:
    control = Control(lab)
    ids = [control.send("exec", node="beta", argv=["echo", str(n)], env={}, tty=None) for n in range(8)]
    outputs: dict[int, bytes] = {}
    answered = 0
    while answered < len(ids):
        message = json_line(control)
        if message.get("event") == "output":
            outputs[message["id"]] = outputs.get(message["id"], b"") + base64.b64decode(message["data"])
        elif "event" not in message:
            answered += 1
    assert [outputs[i] for i in ids] == [f"{n}\n".encode() for n in range(8)]


def json_line(control: Control) -> dict[str, Any]:
    import json

    message: dict[str, Any] = json.loads(control._lines.readline())
    return message


def test_run_directory_is_named_in_the_status(lab: Running, call: Callable[..., dict[str, Any]]) -> None:
    status = call("status")
    assert Path(status["run_dir"]) == lab.run_dir
    assert (status["nodes"], status["ready"]) == (3, True)
