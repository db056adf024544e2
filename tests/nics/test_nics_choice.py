"""Tests the choice of a NIC, and each reason why a lab may not use it, with the remedy."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from nic_trees import dual_port

from orchestrator.nics import sysfs
from orchestrator.nics.model import Facts, Netdev
from orchestrator.nics.resolve import resolve
from orchestrator.plan.nics import NicUse

A, B = "0000:01:00.0", "0000:01:00.1"


def use(asked: str, kind: str = "namespace", place: str = "nodes.n.eth0") -> NicUse:
    return NicUse(asked, place, kind)  # type: ignore[arg-type]


def facts(root: Path, **changes: object) -> Facts:
    names = [name for function in sysfs.functions(root) for name in function.netdevs]
    devices = tuple(Netdev(n, i, f"02:00:00:00:00:{i:02x}", 1500) for i, n in enumerate(names, 2))
    found = Facts(sysfs.functions(root), devices, sysfs.iommu(root), {"eno1": "it carries the default route"})
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        (A, A), ("01:00.1", B), ("0000:01:00.1", B), ("8086:10c9", A), ("8086:10C9", A), ("enp1s0f1", B),
        ("enp1s0f0:vf0", "0000:01:10.0"), (f"{A}:vf0", "0000:01:10.0"), ("0000:01:10.0", "0000:01:10.0"),
    ],
)  # fmt: skip
def test_every_way_to_name_a_nic(tmp_path: Path, asked: str, address: str) -> None:
    tree = dual_port(tmp_path)
    tree.virtual(A, "0000:01:10.0", 0, netdev="enp1s0f0v0", group=9)
    (choice,) = resolve([use(asked)], facts(tmp_path), {})
    assert choice.refusal is None
    assert choice.nic is not None
    assert choice.nic.function is not None
    assert choice.nic.function.address == address


def test_vendor_and_device_take_the_next_one_that_nobody_named(tmp_path: Path) -> None:
    dual_port(tmp_path)
    uses = [use("8086:10c9", place="one"), use(A, place="two")]
    keys = [choice.nic.key for choice in resolve(uses, facts(tmp_path), {}) if choice.nic]
    assert keys == [B, A]
    (left,) = resolve([use("8086:10c9")], facts(tmp_path), {A: "other"})
    assert left.nic is not None
    assert left.nic.key == B


def said(
    root: Path, asked: str, kind: str = "namespace", leased: dict[str, str] | None = None, **more: object
) -> str:
    (choice,) = resolve([use(asked, kind)], facts(root, **more), leased or {})
    assert choice.refusal is not None
    return f"{choice.refusal.rule}; {choice.refusal.remedy}"


def test_what_is_not_there(tmp_path: Path) -> None:
    dual_port(tmp_path)
    text = said(tmp_path, "0000:09:00.0")
    assert text.startswith("no such NIC is in this machine")
    assert f"{A} 8086:10c9 enp1s0f0" in text
    assert said(tmp_path, "enp1s0f0:vf3").startswith("no such NIC")


def test_refusals_in_words(tmp_path: Path) -> None:
    dual_port(tmp_path)
    assert "is the management NIC: it carries the default route" in said(tmp_path, "eno1")
    text = said(tmp_path, A, leased={A: "other"})
    assert text.startswith(f"{A} (enp1s0f0) is leased by lab other")
    assert "vnet down other" in text
    text = said(tmp_path, "8086:10c9", leased={A: "x", B: "y"})
    assert "none of 2 can be had" in text
    assert "lab x" in text
    assert "lab y" in text
    first, second = resolve([use(A), use("enp1s0f0", place="b")], facts(tmp_path), {})
    assert first.refusal is None
    assert second.refusal is not None
    assert "is requested twice" in second.refusal.rule


def test_ports_in_use(tmp_path: Path) -> None:
    dual_port(tmp_path)
    bridged = (Netdev("enp1s0f0", 2, "", 1500, master="br0"), Netdev("br0", 9, "", 1500, kind="bridge"))
    assert "in use as a port of br0" in said(tmp_path, A, netdevs=bridged)
    vlan = (Netdev("enp1s0f0", 2, "", 1500), Netdev("v7", 9, "", 1500, kind="vlan", lower="enp1s0f0"))
    assert "v7 stands on it; remove it first: ip link del dev v7" in said(tmp_path, A, netdevs=vlan)


def test_a_port_without_interface_is_for_guests_only(tmp_path: Path) -> None:
    tree = dual_port(tmp_path)
    tree.function("0000:02:00.0", driver="vfio-pci", group=11)
    text = said(tmp_path, "0000:02:00.0")
    assert "has no interface here (driver vfio-pci)" in text
    assert "echo 0000:02:00.0 > /sys/bus/pci/drivers_probe" in text
    (choice,) = resolve([use("0000:02:00.0", "vm")], facts(tmp_path), {})
    assert choice.refusal is None


def test_what_a_guest_needs(tmp_path: Path) -> None:
    dual_port(tmp_path / "own")
    (choice,) = resolve([use(A, "vm")], facts(tmp_path / "own"), {})
    assert choice.refusal is None
    dual_port(tmp_path / "shared", shared=True)
    text = said(tmp_path / "shared", A, "vm")
    assert f"shares IOMMU group 7 with {B}" in text
    (choice,) = resolve([use(A)], facts(tmp_path / "shared"), {})
    assert choice.refusal is None, "a namespace shares nothing"
    dual_port(tmp_path / "none", iommu=False)
    text = said(tmp_path / "none", A, "vm")
    assert "is in no IOMMU group: the IOMMU is off or absent" in text
    assert "intel_iommu=on iommu=pt" in text
    dual_port(tmp_path / "amd", iommu=False).file("proc/cpuinfo", "vendor_id\t: AuthenticAMD\n")
    text = said(tmp_path / "amd", A, "vm")
    assert "AMD-Vi" in text and "amd_iommu=on" not in text, "a word that Linux does not know"
    dual_port(tmp_path / "plain").remapping(on=False)
    assert "allow_unsafe_interrupts=1" in said(tmp_path / "plain", A, "vm")
    dual_port(tmp_path / "old").file("lib/modules/6.1.0/modules.dep", "")
    assert "no vfio-pci" in said(tmp_path / "old", A, "vm")


def test_a_parent_is_not_passed_from_under_its_virtual_functions(tmp_path: Path) -> None:
    dual_port(tmp_path).virtual(A, "0000:01:10.0", 0, group=9)
    text = said(tmp_path, A, "vm")
    assert "1 virtual functions, which would vanish with it" in text
    assert 'ask for one of them ("enp1s0f0:vf0")' in text


def test_only_pci_devices_are_passed(tmp_path: Path) -> None:
    dual_port(tmp_path)
    stick = (Netdev("usb0", 12, "", 1500),)
    assert "is no PCI device" in said(tmp_path, "usb0", "vm", netdevs=stick)
    (choice,) = resolve([use("usb0")], facts(tmp_path, netdevs=stick), {})
    assert choice.nic is not None
    assert choice.nic.key == "net-usb0"
