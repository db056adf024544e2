"""Tests how NICs are returned: leases are files, functions get their driver back, and errors of libvirt are
explained.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from nic_trees import dual_port

from orchestrator.nics import binding, interface, leases
from orchestrator.nics.explain import explain
from orchestrator.nics.leases import Found, Lease
from orchestrator.nics.model import NicError

A = "0000:01:00.0"
LEASE = Lease(
    A, "lab", "nodes.n.eth0", "vm", "", "", 1, 2, A, "igb",
    Found("enp1s0f0", 3, "02:00:00:00:00:01", 1500, True, ("192.0.2.1/24",), ("-4 default",), {"tso": True}),
)  # fmt: skip


def test_a_lease_survives_its_file_and_is_given_once(tmp_path: Path) -> None:
    leases.take(tmp_path, LEASE)
    assert leases.of_lab(tmp_path, "lab") == [LEASE]
    assert leases.of_lab(tmp_path, "other") == []
    with pytest.raises(NicError, match=r"leased by lab lab; end it with `vnet down lab`"):
        leases.take(tmp_path, dataclasses.replace(LEASE, lab="other"))
    assert leases.every(tmp_path) == [LEASE]
    leases.drop(tmp_path, A)
    assert not (tmp_path / leases.DIRECTORY).exists()


def test_a_broken_lease_is_not_passed_over(tmp_path: Path) -> None:
    leases.take(tmp_path, LEASE)
    leases.path_of(tmp_path, A).write_text("{}")
    with pytest.raises(NicError, match="not a lease"):
        leases.every(tmp_path)


class Kernel:
    """Simulates the kernel's reaction to writes into a sysfs tree; with `slow`, the driver never binds."""

    def __init__(self, root: Path, slow: bool = False) -> None:
        self.root, self.slow, self.written = root, slow, list[str]()

    def write(self, path: Path, text: str) -> None:
        self.written.append(f"{path.name} {text.strip()}".strip())
        device = self.root / "sys/bus/pci/devices" / A
        if path.name == "unbind":
            (device / "driver").unlink()
        if path.name == "drivers_probe" and not self.slow:
            (device / "driver").symlink_to("../../../bus/pci/drivers/igb")
            (device / "net" / "eth0").mkdir(parents=True)


def held_by_vfio(root: Path) -> None:
    dual_port(root)
    device = root / "sys/devices/pci0000:00" / A
    (device / "net" / "enp1s0f0").rmdir()
    (device / "driver").unlink()
    (root / "sys/bus/pci/drivers/vfio-pci").mkdir()
    (device / "driver").symlink_to("../../../bus/pci/drivers/vfio-pci")


def test_a_function_left_with_vfio_goes_back_to_its_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_by_vfio(tmp_path)
    kernel = Kernel(tmp_path)
    monkeypatch.setattr(binding, "_write", kernel.write)
    assert binding.give_back(A, "igb", 0, tmp_path) == "eth0"
    assert kernel.written == ["driver_override", f"unbind {A}", f"drivers_probe {A}"]


def test_a_function_that_is_back_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dual_port(tmp_path)
    kernel = Kernel(tmp_path)
    monkeypatch.setattr(binding, "_write", kernel.write)
    assert binding.give_back(A, "igb", 0, tmp_path) == "enp1s0f0"
    assert kernel.written == []


def test_a_driver_that_does_not_come_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_by_vfio(tmp_path)
    monkeypatch.setattr(binding, "_write", Kernel(tmp_path, slow=True).write)
    monkeypatch.setattr(binding, "DEADLINE_S", 0.1)
    with pytest.raises(NicError, match=r"driver igb did not take it back within 0.1 s \(now none\); echo"):
        binding.give_back(A, "igb", 0, tmp_path)
    with pytest.raises(NicError, match="has vanished"):
        binding.give_back("0000:09:00.0", "igb", 0, tmp_path)


VFIO = "vfio 0000:01:00.0: "
NIC = "PCI device 0000:01:00.0 "
TEXTS = {
    "unsupported configuration: host doesn't support passthrough of host PCI devices": "intel_iommu=on",
    f"qemu: -device vfio-pci: {VFIO}group 5 is not viable\nPlease ensure": "IOMMU group 5 also holds",
    "internal error: qemu unexpectedly closed the monitor: 2026-11-21T23:48:17.851076Z qemu-system-x86_64: "
    '-device {"driver":"vfio-pci","host":"0000:02:01.0","id":"hostdev0","bus":"pci.2","addr":"0x1"}: '
    "vfio 0000:02:01.0: group 6 is not viable Please ensure all devices within the iommu_group are bound to "
    "their vfio bus driver.": "IOMMU group 6 also holds",  # the message of libvirt 9.0 and QEMU 7.2
    f"{VFIO}failed to setup container for group 6: Failed to set iommu: Operation not permitted": "x2APIC",
    f"Requested operation is not valid: {NIC}is in use by driver QEMU, domain l2": "machine l2;",
    f"Unmanaged {NIC}must be manually detached from the host": "managed='no'",
    f"{VFIO}failed to open /dev/vfio/7: Device or resource busy": "another program",
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_libvirt_are_explained(text: str) -> None:
    assert TEXTS[text] in (explain(text) or "")


def test_other_texts_are_left_as_they_are() -> None:
    assert explain("cannot open file: No such file or directory") is None


def test_routes_to_gateways_come_first_and_a_refused_one_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    routes = ("-4 default via 192.0.2.1", "-4 192.0.2.1 scope link", "-4 198.51.100.0/24 via 192.0.2.9")
    added: list[str] = []

    def run(argv: list[str]) -> None:
        added.append(" ".join(argv[4:-2]))
        if "192.0.2.9" in argv:
            raise NicError("ip: no route to 192.0.2.9")

    monkeypatch.setattr(interface, "run", run)
    monkeypatch.setattr(interface, "_routes", lambda device: iter(()))
    assert LEASE.found is not None
    order = (routes[2], routes[0], routes[1])
    with pytest.raises(NicError, match=r"no route to 192\.0\.2\.9"):
        interface._restore_routes(dataclasses.replace(LEASE.found, routes=order))
    assert added == [
        "192.0.2.1 scope link", "198.51.100.0/24 via 192.0.2.9", "default via 192.0.2.1"
    ]  # fmt: skip
