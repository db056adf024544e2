"""Tests the NIC in light nodes: the doctor, refusals, scenario 1 over the cable, and every way of giving the
ports back.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from hil_machine import (
    DEVICES,
    MANAGEMENT,
    PORT_A,
    PORT_B,
    RESULTS,
    Ports,
    ip,
    pair,
    process_of,
    run_of,
    until,
    vnet,
)


def test_the_doctor_explains_iommu_groups_and_who_may_have_a_port() -> None:
    done = vnet("doctor", "--json")
    assert done.returncode == 0
    found = {f["subject"]: f for f in json.loads(done.stdout)}
    assert found["netem"]["state"] == "ok"
    assert found["iommu"]["state"] == "ok"
    assert "interrupts remapped" in found["iommu"]["found"]
    for address in (PORT_A, PORT_B):
        assert found[f"nic {address}"]["state"] == "ok", found
        assert "8086:10c9" in found[f"nic {address}"]["found"]
        assert "for light nodes and virtual machines" in found[f"nic {address}"]["found"]
    assert "default route" in found[f"nic {MANAGEMENT}"]["found"]


def test_ports_that_no_lab_may_have_are_refused(tmp_path: Path) -> None:
    ip("link", "add", "br9", "type", "bridge")
    ip("link", "set", "dev", Ports.name_of(PORT_B), "master", "br9")
    try:
        done = vnet("check", pair(tmp_path, "refused", MANAGEMENT, PORT_B))
    finally:
        ip("link", "del", "dev", "br9")
    assert done.returncode == 3
    assert "is the management NIC: it carries the machine's default route" in done.stderr
    assert "is in use as a port of br9" in done.stderr
    assert not (RESULTS / "refused").exists()


def test_the_port_of_the_ssh_session_is_refused(tmp_path: Path) -> None:
    ip("route", "del", "default")
    try:
        done = vnet("check", pair(tmp_path, "session", MANAGEMENT, PORT_B))
    finally:
        ip("route", "add", "default", "via", "192.0.2.1")
    assert done.returncode == 3
    assert "is the management NIC: your ssh session comes in through it" in done.stderr


def test_scenario_1_over_the_cable_under_host_netem() -> None:
    # the port is named once by its interface name; the lab must restore its address and route
    name = Ports.name_of(PORT_A)
    ip("addr", "add", "198.51.100.1/24", "dev", name)
    ip("link", "set", "dev", name, "up")
    ip("route", "add", "203.0.113.0/24", "via", "198.51.100.9", "dev", name, "proto", "static")
    try:
        done = vnet(
            "run", "topologies/mqtt-hil-light.yaml", "-p", f"port_a={name}", "-p", "port_b=8086:10c9",
            "-p", "clients=4", "-p", "hold=10s", "-p", "rate=10 /s",
            "--results", str(RESULTS), "--kernel", "host", "--raw",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        proof = json.loads((run_of("mqtt-hil-light") / "proof.json").read_text())
        reached = [(p["link"], p["measured"]) for p in proof if p["quantity"] == "reach"]
        assert sorted(reached) == [("cable", 1.0)] * 2 + [("wan", 1.0)] * 2
        # An emulated machine delays packets and never makes them early: the test shows that the qdisc exists,
        # not that it is exact.
        assert all(9e6 < p["measured"] < 40e6 for p in proof if p["quantity"] == "delay"), proof
        addresses = ip("addr", "show", "dev", name)
        assert "198.51.100.1/24" in addresses
        assert "203.0.113.0/24" in ip("route", "show", "dev", name)
    finally:
        ip("addr", "del", "198.51.100.1/24", "dev", name)
        ip("link", "set", "dev", name, "down")


def test_interaction_models_through_the_cable() -> None:
    # holds of the middleware that publishes every 45 s are longer
    holds = {"udp": "10s", "router-dealer": "10s", "pub-sub": "60s", "pgm": "60s"}
    for model, hold in holds.items():
        done = vnet(
            "run", f"topologies/papers/interaction-{model}.yaml", "-p", f"nics={PORT_A} {PORT_B}",
            "-p", "network=ideal", "-p", "consumers=2", "-p", "settle=5s", "-p", f"hold={hold}",
            "-p", "patience=20s", "--results", str(RESULTS), "--kernel", "host", "--raw",
        )  # fmt: skip
        assert done.returncode == 0, f"{model}: {done.stderr}"


def test_two_labs_cannot_have_one_port_and_a_kill_is_repaired(tmp_path: Path) -> None:
    assert vnet("up", pair(tmp_path, "first"), "--results", str(RESULTS)).returncode == 0
    assert "eth0" in ip("-n", "vnet-first.far", "-br", "link")
    second = vnet("up", pair(tmp_path, "second"), "--results", str(RESULTS))
    assert second.returncode == 3
    assert "is leased by lab first" in second.stderr
    assert "vnet down first" in second.stderr
    answer = vnet("exec", "first", "near", "--", "ping", "-c", "3", "-i", "0.2", "10.9.0.2")
    assert answer.returncode == 0
    os.kill(process_of("first", "lab"), signal.SIGKILL)
    os.kill(process_of("first", "launcher"), signal.SIGKILL)
    again = vnet("up", pair(tmp_path, "third"), "--results", str(RESULTS))
    assert again.returncode == 3, "the crashed lab still has the port"
    assert vnet("down", "first").returncode == 0


def test_namespaces_that_vanish_leave_only_a_name_to_repair(tmp_path: Path) -> None:
    assert vnet("up", pair(tmp_path, "vanished"), "--results", str(RESULTS)).returncode == 0
    for role in ("lab", "launcher"):
        os.kill(process_of("vanished", role), signal.SIGKILL)
    for name in ("vnet-vanished.far", "vnet-vanished.near", "vnet-vanished"):
        ip("netns", "del", name)
    until(20, "the ports to come home", lambda: all(_home(a) for a in (PORT_A, PORT_B)))
    assert vnet("down", "vanished").returncode == 0


def _home(address: str) -> bool:
    return any((DEVICES / address).glob("net/*"))
