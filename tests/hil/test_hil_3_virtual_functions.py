"""Tests SR-IOV: a port's virtual functions in light nodes and in a guest, over the cable to the
other port.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hil_machine import DEVICES, PORT_A, PORT_B, RESULTS, Ports, driver, guest, ip, pair, until, vnet

COUNT = 2


@pytest.fixture
def parent() -> Iterator[str]:
    """Yields the interface of port A with virtual functions; it must be up for them to work."""
    name = Ports.name_of(PORT_A)
    functions = DEVICES / PORT_A / "sriov_numvfs"
    ip("link", "set", "dev", name, "up")
    functions.write_text(str(COUNT))
    try:
        until(60, "the virtual functions' interfaces", lambda: len(virtual()) == COUNT)
        yield name
    finally:
        functions.write_text("0")
        ip("link", "set", "dev", name, "down")


def virtual() -> list[str]:
    """Returns the interfaces of the virtual functions in the machine's own namespace."""
    return sorted(d.name for n in range(COUNT) for d in (DEVICES / PORT_A / f"virtfn{n}").glob("net/*"))


def test_in_a_light_node(tmp_path: Path, parent: str) -> None:
    names = virtual()
    assert vnet("up", pair(tmp_path, "virtual", f"{parent}:vf1"), "--results", str(RESULTS)).returncode == 0
    assert "eth0" in ip("-n", "vnet-virtual.far", "-br", "link")
    assert len(virtual()) == 1
    answer = vnet("exec", "virtual", "near", "--", "ping", "-c", "5", "-i", "0.3", "-W", "5", "10.9.0.1")
    assert answer.returncode == 0
    assert vnet("down", "virtual").returncode == 0
    assert virtual() == names
    said = {f["subject"]: f for f in json.loads(vnet("doctor", "--json").stdout)}
    assert "which would vanish with it" in said[f"nic {PORT_A}"]["consequence"]
    assert f"virtual function of {PORT_A}" in said[f"nic {address(1)}"]["found"]


@pytest.mark.usefixtures("kvm")
def test_in_a_guest(tmp_path: Path, parent: str) -> None:
    names = virtual()
    file = guest(tmp_path, "virtualguest", f"{parent}:vf0", PORT_B)
    assert vnet("up", file, "--results", str(RESULTS), timeout=800).returncode == 0
    assert (driver(address(0)), driver(PORT_A)) == ("vfio-pci", "igb")
    answer = vnet("exec", "virtualguest", "near", "--", "ping", "-c", "5", "-i", "0.3", "-W", "5", "10.9.0.1")
    assert answer.returncode == 0
    assert vnet("down", "virtualguest").returncode == 0
    assert (driver(address(0)), virtual()) == ("igbvf", names)


def address(number: int) -> str:
    return (DEVICES / PORT_A / f"virtfn{number}").readlink().name
