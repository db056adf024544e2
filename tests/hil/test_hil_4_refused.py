"""Tests the explanations of the errors of libvirt and QEMU for a port that cannot be passed through; the
tests bypass vNET's own checks.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hil_machine import DEVICES, PORT_A, PORT_B, driver, guest, until, vnet

from orchestrator.images import locate
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm import account
from orchestrator.lab.vm.connection import Connection
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.limits import VmLimits
from orchestrator.lab.vm.machines import Machines
from orchestrator.lab.vm.shown import Shown
from orchestrator.nics.binding import load_vfio
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

AGENT = Path(__file__).parents[2] / "target/release/vnet-agent"
STATE = Path("/run/hil-said")
VFIO = ("vfio_pci", "vfio_iommu_type1", "vfio")  # modules of VFIO, in the order in which they are unloaded
TWO = f"""
name: said
segments: {{lan: {{subnet: 10.9.0.0/24}}}}
nodes:
  one: {{segment: lan, kind: vm, image: builtin-nic, memory: 160 MiB, nic: "{PORT_A}"}}
  two: {{segment: lan, kind: vm, image: builtin-nic, memory: 160 MiB, nic: "{PORT_B}"}}
run: {{hold: 1 s}}
"""
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    STATE.mkdir()
    connection = Connection("qemu:///embed", STATE)
    plan = make_plan(parse("two.yaml", TWO.encode()))
    made = Machines(plan, STATE, connection, _no_limits(connection), True, account.of_lab(STATE))
    yield made
    made.close()
    connection.close()
    shown().close()
    shutil.rmtree(STATE)


@cache
def shown() -> Shown:
    """Returns the images as the account of QEMU sees them."""
    return Shown(STATE, account.of_lab(STATE))


def _no_limits(connection: Connection) -> VmLimits:
    return VmLimits(os.cpu_count() or 1, None, connection.libvirt)


def given(name: str, address: str) -> Guest:
    """Returns a machine of the plan that gets the NIC at `address`, even if another machine has it."""
    plan = make_plan(parse("two.yaml", TWO.encode()))
    node = next(n for n in plan.nodes if n.name == name)
    cards = tuple(dataclasses.replace(card, pci=address) for card in node.interfaces)
    image = shown().image(locate("builtin-nic", AGENT))
    placed, place = dataclasses.replace(node, interfaces=cards), STATE / name
    return Guest(placed, image, place, place, STATE / f"{name}.log")


def shared() -> tuple[str, str]:
    """Returns the PCI addresses of the two old NICs behind one bridge."""
    found = sorted(d.name for d in DEVICES.iterdir() if (d / "device").read_text().strip() == "0x100e")
    return found[0], found[1]


def test_without_vfio_in_the_kernel(machines: Machines, record_property: Record) -> None:
    subprocess.run(["modprobe", "-r", *VFIO], check=True)
    with pytest.raises(LabError) as said:
        machines.create(given("one", PORT_A))
    record_property("said", said.value)
    assert "host doesn't support passthrough of host PCI devices" in str(said.value)
    assert "that is: the IOMMU is off, or vfio-pci is not loaded" in str(said.value)
    assert driver(PORT_A) == "igb"


def test_a_port_that_another_machine_has(machines: Machines, record_property: Record) -> None:
    load_vfio()
    one, two = given("one", PORT_A), given("two", PORT_A)
    one.domain = machines.create(one)
    try:
        with pytest.raises(LabError) as said:
            machines.create(two)
    finally:
        machines.destroy(one)
    record_property("said", said.value)
    assert "is in use by driver QEMU, domain vnet-said.one" in str(said.value)
    assert f"that is: {PORT_A} is already in the virtual machine vnet-said.one" in str(said.value)
    until(60, "the port to come back to igb", lambda: driver(PORT_A) == "igb")


def test_a_group_that_the_machine_uses_too(
    machines: Machines, tmp_path: Path, record_property: Record
) -> None:
    first, second = shared()
    refused = vnet("check", guest(tmp_path, "group", first, PORT_B))
    assert refused.returncode == 3
    assert f"with {second}: all or none can be passed" in refused.stderr
    load_vfio()
    with pytest.raises(LabError) as said:
        machines.create(given("one", first))
    record_property("said", said.value)
    assert "is not viable" in str(said.value)
    assert "also holds devices that the host uses" in str(said.value)
    until(60, "the port to come back to e1000", lambda: driver(first) == "e1000")
