"""Tests the reading of sysfs trees: IOMMU groups, bridges, virtual functions, virtio, interrupt remapping, no
IOMMU.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from nic_trees import Tree, dual_port

from orchestrator.nics import netdevs, sysfs
from orchestrator.nics.model import Netdev


def test_a_dual_port_card(tmp_path: Path) -> None:
    dual_port(tmp_path)
    onboard, a, b = sysfs.functions(tmp_path)
    assert (onboard.ident, onboard.driver, onboard.netdevs) == ("8086:10d3", "e1000e", ("eno1",))
    assert (a.address, a.ident, a.group, a.virtfns_possible) == ("0000:01:00.0", "8086:10c9", 7, 7)
    assert a.sharers == (), "the root port in its group is a bridge and stays with the host"
    assert (b.netdevs, b.group, b.busy) == (("enp1s0f1",), 8, False)


def test_a_shared_group_names_the_others(tmp_path: Path) -> None:
    dual_port(tmp_path, shared=True)
    assert sysfs.function(tmp_path, "0000:01:00.0").sharers == ("0000:01:00.1",)


def test_virtual_functions_and_their_parent(tmp_path: Path) -> None:
    tree = dual_port(tmp_path)
    tree.virtual("0000:01:00.0", "0000:01:10.0", 0, netdev="enp1s0f0v0", group=9)
    tree.virtual("0000:01:00.0", "0000:01:10.2", 1, driver=None, group=10)
    parent = sysfs.function(tmp_path, "0000:01:00.0")
    assert parent.virtfns == {0: "0000:01:10.0", 1: "0000:01:10.2"}
    child = sysfs.function(tmp_path, "0000:01:10.2")
    assert (child.physfn, child.driver, child.netdevs, child.group) == ("0000:01:00.0", None, (), 10)


def test_a_virtio_nic_has_its_interface_a_level_below(tmp_path: Path) -> None:
    Tree(tmp_path).function("0000:00:03.0", driver="virtio-pci", netdev="eth0", below="virtio1")
    assert sysfs.functions(tmp_path)[0].netdevs == ("eth0",)


def test_without_an_iommu(tmp_path: Path) -> None:
    dual_port(tmp_path, iommu=False)
    found = sysfs.iommu(tmp_path)
    assert (found.groups, found.remapping, found.vfio, found.intel, found.asked) == (
        0,
        False,
        True,
        True,
        False,
    )
    assert sysfs.function(tmp_path, "0000:01:00.0").group is None


def test_asked_for_on_the_command_line_and_loaded(tmp_path: Path) -> None:
    tree = dual_port(tmp_path)
    tree.file("proc/cmdline", "root=/dev/sda1 intel_iommu=on iommu=pt\n")
    tree.file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n")
    tree.file("lib/modules/6.1.0/modules.dep", "")
    found = sysfs.iommu(tmp_path)
    assert (found.groups, found.remapping, found.asked, found.unsafe_allowed) == (3, True, True, True)
    assert not found.vfio, "neither loaded nor a module of this kernel"
    (tmp_path / "sys/bus/pci/drivers/vfio-pci").mkdir()
    assert sysfs.iommu(tmp_path).vfio


def test_a_machine_without_pci(tmp_path: Path) -> None:
    assert sysfs.functions(tmp_path) == ()
    assert sysfs.iommu(tmp_path).remapping is None


BOND = [
    Netdev("eno1", 2, "", 1500, master="bond0"), Netdev("eno2", 3, "", 1500, master="bond0"),
    Netdev("bond0", 4, "", 1500, kind="bond"), Netdev("bond0.7", 5, "", 1500, kind="vlan", lower="bond0"),
    Netdev("br0", 6, "", 1500, kind="bridge"), Netdev("eno3", 7, "", 1500, master="br0", addresses=()),
    Netdev("enp1s0f0", 8, "", 1500, addresses=("198.51.100.1/24",)),
]  # fmt: skip


def test_what_the_default_route_stands_on_is_management_too() -> None:
    found = netdevs.needed(BOND, ["bond0.7"], None)
    assert set(found) == {"bond0.7", "bond0", "eno1", "eno2"}
    assert found["bond0.7"] == "it carries the machine's default route"
    assert found["eno1"].startswith("bond0 stands on it")


def test_the_port_of_the_ssh_session_is_management() -> None:
    found = netdevs.needed(BOND, ["br0"], "198.51.100.1")
    assert set(found) == {"br0", "eno3", "enp1s0f0"}
    assert "ssh session" in found["enp1s0f0"]


def test_the_ssh_session_is_found_behind_sudo(tmp_path: Path) -> None:
    for pid, parent, environment in (
        (30, 20, b"PATH=/bin\0"),
        (20, 1, b"A=b\0SSH_CONNECTION=203.0.113.9 51 2001:db8::2 22\0"),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(environment)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (su (do)) S {parent} 1 1")
    assert netdevs.ssh_address({}, 30, tmp_path) == "2001:db8::2"
    assert netdevs.ssh_address({"SSH_CONNECTION": "203.0.113.9 51 192.0.2.2 22"}, 30, tmp_path) == "192.0.2.2"
    assert netdevs.ssh_address({}, 1, tmp_path) is None


@pytest.mark.parametrize(
    ("entry", "lower"),
    [
        ({"ifname": "v", "ifindex": 3, "link": "peer", "linkinfo": {"info_kind": "veth"}}, None),
        ({"ifname": "e.7", "ifindex": 4, "link": "e", "linkinfo": {"info_kind": "vlan"}}, "e"),
    ],
)  # fmt: skip
def test_a_veth_does_not_stand_on_its_peer(entry: dict[str, object], lower: str | None) -> None:
    assert netdevs.from_entry(entry).lower == lower
