"""Tests the NIC in a virtual machine, by passthrough under KVM: scenario 1 behind the cable, and every way of
giving the port back.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from hil_machine import PORT_A, PORT_B, RESULTS, driver, guest, process_of, run_of, until, vnet

pytestmark = pytest.mark.usefixtures("kvm")


def qemu(lab: str) -> int:
    """Returns the pid of the machine's QEMU, found by the name that libvirt gave it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0") if (entry / "cmdline").exists() else []
            if any(w.startswith(f"guest=vnet-{lab}.far".encode()) for w in words):
                return int(entry.name)
    raise AssertionError(f"no QEMU of lab {lab}")


def test_scenario_1_with_the_broker_in_a_guest_behind_the_cable() -> None:
    done = vnet(
        "run", "topologies/mqtt-hil.yaml", "-p", "clients=4", "-p", "hold=10s", "-p", "rate=10 /s",
        "-p", "boot_within=400s",
        "--results", str(RESULTS), "--raw", timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = run_of("mqtt-hil")
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert manifest["kernel"]["kind"] == "host"
    assert "tcg" not in {w["code"] for w in manifest["warnings"]}, "KVM ran the guest"


def test_a_guest_with_a_port_serves_and_kills_are_repaired(tmp_path: Path) -> None:
    assert vnet("up", guest(tmp_path, "guest"), "--results", str(RESULTS), timeout=800).returncode == 0
    assert (driver(PORT_A), driver(PORT_B)) == ("vfio-pci", "igb")
    answer = vnet("exec", "guest", "near", "--", "ping", "-c", "3", "-i", "0.3", "-W", "5", "10.9.0.1")
    assert answer.returncode == 0
    second = vnet("check", guest(tmp_path, "again"))
    assert second.returncode == 3
    assert "is leased by lab guest" in second.stderr
    os.kill(qemu("guest"), signal.SIGKILL)
    os.kill(process_of("guest", "lab"), signal.SIGKILL)
    assert vnet("down", "guest").returncode == 0


def test_a_guest_whose_machine_is_killed_gives_the_port_back(tmp_path: Path) -> None:
    assert vnet("up", guest(tmp_path, "killed"), "--results", str(RESULTS), timeout=800).returncode == 0
    # the lab then ends by itself, because its policy for failed nodes is `abort`
    os.kill(qemu("killed"), signal.SIGKILL)
    until(120, "the lab to end", lambda: not Path("/run/vnet/killed").exists())
    until(60, "the port to come back to igb", lambda: driver(PORT_A) == "igb")
