"""Reads PCI network functions, IOMMU groups and interrupt remapping from sysfs and procfs below a root."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from orchestrator.nics.model import Iommu, PciNic

NETWORK, BRIDGE = "0x02", "0x06"  # first byte of a PCI class: PCI Code and ID Assignment Specification
VFIO = "vfio-pci"


def functions(root: Path = Path("/")) -> tuple[PciNic, ...]:
    """Returns every PCI network function, ordered by address; empty without PCI."""
    devices = root / "sys/bus/pci/devices"
    found = sorted(devices.iterdir()) if devices.is_dir() else []
    return tuple(function(root, d.name) for d in found if text(d / "class").startswith(NETWORK))


def function(root: Path, address: str) -> PciNic:
    """Returns one PCI function; its `vendor` is empty if it does not exist. Opens its VFIO group for a moment
    if it is bound to vfio-pci.
    """
    device = root / "sys/bus/pci/devices" / address
    group = target(device / "iommu_group")
    driver = target(device / "driver")
    return PciNic(
        address=address,
        vendor=text(device / "vendor").removeprefix("0x"),
        device=text(device / "device").removeprefix("0x"),
        driver=driver,
        netdevs=netdevs(device),
        group=int(group) if group is not None else None,
        sharers=sharers(root, address, group) if group is not None else (),
        physfn=target(device / "physfn"),
        virtfns={int(v.name.removeprefix("virtfn")): Path(v.readlink()).name for v in device.glob("virtfn*")},
        virtfns_possible=int(text(device / "sriov_totalvfs") or 0),
        busy=driver == VFIO and group is not None and held(root / "dev/vfio" / group),
    )


def netdevs(device: Path) -> tuple[str, ...]:
    """Returns the names of the function's interfaces that sysfs shows in this namespace."""
    # For virtio, the network interface is below a device of its own.
    found = [*device.glob("net/*"), *device.glob("virtio*/net/*")]
    return tuple(sorted(d.name for d in found))


def sharers(root: Path, address: str, group: str) -> tuple[str, ...]:
    """Returns the other devices of the IOMMU group, without PCI bridges, which stay with the host (kernel's
    vfio.rst).
    """
    members = root / "sys/kernel/iommu_groups" / group / "devices"
    others = sorted(m.name for m in members.iterdir() if m.name != address) if members.is_dir() else []
    classes = {a: text(root / "sys/bus/pci/devices" / a / "class") for a in others}
    return tuple(a for a in others if not classes[a].startswith(BRIDGE))


def held(group: Path) -> bool:
    """Returns whether a program has this VFIO group open; opens the group for a moment, since only one
    program can. False if it cannot be opened for another reason.
    """
    try:
        os.close(os.open(group, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def iommu(root: Path = Path("/")) -> Iommu:
    """Returns the machine's support for passing devices to virtual machines."""
    groups = root / "sys/kernel/iommu_groups"
    words = text(root / "proc/cmdline").split()
    allowed = text(root / "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts")
    return Iommu(
        groups=sum(1 for _ in groups.iterdir()) if groups.is_dir() else 0,
        remapping=remapping(root),
        unsafe_allowed=allowed == "Y",
        vfio=vfio(root),
        intel="AuthenticAMD" not in text(root / "proc/cpuinfo"),
        asked=any(word.startswith(("intel_iommu=on", "amd_iommu=on")) for word in words),
    )


def remapping(root: Path) -> bool | None:
    """Returns whether interrupts are remapped: the names of their chips then begin with IR-
    (drivers/iommu/irq_remapping.c). None if no known chip is listed.
    """
    lines = text(root / "proc/interrupts").splitlines()
    chips = [word for line in lines for word in line.split() if "IO-APIC" in word or "PCI-MSI" in word]
    return any(chip.startswith("IR-") for chip in chips) if chips else None


def vfio(root: Path) -> bool:
    """Returns whether vfio-pci is loaded, built in, or a module of the running kernel."""
    if (root / "sys/bus/pci/drivers" / VFIO).is_dir():
        return True
    modules = root / "lib/modules" / (text(root / "proc/sys/kernel/osrelease") or "none")
    return any(f"/{VFIO}.ko" in text(modules / list_) for list_ in ("modules.dep", "modules.builtin"))


def target(link: Path) -> str | None:
    """Returns the last part of a symbolic link's target; None if there is no link."""
    return Path(link.readlink()).name if link.is_symlink() else None


def text(path: Path) -> str:
    """Returns a small file's text without surrounding white space; "" if the file cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
