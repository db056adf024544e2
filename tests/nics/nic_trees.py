"""Builds a sysfs tree like a real machine's: PCI functions, their drivers, IOMMU groups, virtual
functions.
"""

from __future__ import annotations

from pathlib import Path


class Tree:
    """A root directory with sys, proc, dev and lib; paths and links are those of Linux 6.1 with an 82576
    (igb).
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.devices = root / "sys/bus/pci/devices"
        for directory in (
            "sys/bus/pci/drivers",
            "sys/bus/pci/devices",
            "sys/kernel",
            "proc",
            "lib/modules/6.1.0",
        ):
            (root / directory).mkdir(parents=True)
        self.file("proc/sys/kernel/osrelease", "6.1.0\n")
        self.file("proc/cpuinfo", "vendor_id\t: GenuineIntel\n")
        self.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet\n")

    def file(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def function(
        self, address: str, *, ident: str = "8086:10c9", kind: str = "0x020000", driver: str | None = "igb",
        netdev: str | None = None, group: int | None = None, below: str = "",
    ) -> Path:  # fmt: skip
        """Adds a PCI function; `below` is the name of a device between the function and its interface
        (virtio0).
        """
        real = self.root / "sys/devices/pci0000:00" / address
        real.mkdir(parents=True)
        vendor, device = ident.split(":")
        (real / "vendor").write_text(f"0x{vendor}\n")
        (real / "device").write_text(f"0x{device}\n")
        (real / "class").write_text(f"{kind}\n")
        (real / "driver_override").write_text("(null)\n")
        (self.devices / address).symlink_to(f"../../../devices/pci0000:00/{address}")
        if driver is not None:
            (self.root / "sys/bus/pci/drivers" / driver).mkdir(exist_ok=True)
            (real / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        if netdev is not None:
            (real / below / "net" / netdev).mkdir(parents=True)
        if group is not None:
            members = self.root / f"sys/kernel/iommu_groups/{group}/devices"
            members.mkdir(parents=True, exist_ok=True)
            (members / address).symlink_to(f"../../../../devices/pci0000:00/{address}")
            (real / "iommu_group").symlink_to(f"../../../kernel/iommu_groups/{group}")
        return real

    def virtual(self, parent: str, address: str, number: int, **more: object) -> None:
        """Adds a virtual function of `parent`."""
        real = self.function(address, ident="8086:10ca", **more)  # type: ignore[arg-type]
        (real / "physfn").symlink_to(f"../{parent}")
        (self.devices / parent / f"virtfn{number}").symlink_to(f"../{address}")

    def remapping(self, on: bool) -> None:
        chip = "IR-PCI-MSI" if on else "PCI-MSI"
        self.file(
            "proc/interrupts", f"      CPU0\n 24:   7  {chip} 81920-edge  eth0\nNMI:   0  Non-maskable\n"
        )


def dual_port(root: Path, *, iommu: bool = True, shared: bool = False) -> Tree:
    """Returns a tree with an onboard NIC and a dual-port 82576 behind a root port; each port has its own
    IOMMU group unless `shared`.
    """
    tree = Tree(root)
    tree.file(
        "lib/modules/6.1.0/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko: kernel/drivers/vfio/vfio.ko\n"
    )
    first, second = (7, 7 if shared else 8) if iommu else (None, None)
    tree.function(
        "0000:00:04.0", ident="8086:10d3", driver="e1000e", netdev="eno1", group=4 if iommu else None
    )
    tree.function("0000:00:05.0", ident="1b36:000c", kind="0x060400", driver="pcieport", group=first)
    tree.function("0000:01:00.0", netdev="enp1s0f0", group=first)
    tree.function("0000:01:00.1", netdev="enp1s0f1", group=second)
    for port in ("0000:01:00.0", "0000:01:00.1"):
        (tree.devices / port / "sriov_totalvfs").write_text("7\n")
    tree.remapping(iommu)
    return tree
