"""Provides values for the tests of virtual machines."""

from __future__ import annotations

from pathlib import Path

from orchestrator.images import Image
from orchestrator.lab.limits import Quota
from orchestrator.lab.vm.domain import Card, Disk, Domain

TINY = Domain(
    name="vnet-demo.meter1", lab="demo", node="meter1", state="/run/vnet/demo",
    directory="/run/vnet/demo/vm/meter1", console_log="/results/raw/logs/meter1.console.log", kvm=False,
    memory_bytes=48 << 20, vcpus=1, kernel="/images/tiny/kernel", initrd="/images/tiny/initrd",
    append="console=ttyS0 panic=-1 vnet.lab=demo vnet.node=meter1", owner="+64055:+1879048193",
    cards=(Card("02:00:0a:00:00:01", "meter1"),), partition="/vnet/demo",
    firmware="/usr/share/qemu/qboot.rom",
)  # fmt: skip
FULL = Domain(
    name="vnet-demo.broker", lab="demo", node="broker", state="/run/vnet/demo",
    directory="/run/vnet/demo/vm/broker", console_log="/results/a & b/broker.console.log", kvm=True,
    memory_bytes=512 << 20, vcpus=2, kernel=None, initrd=None, append="", owner="+64055:+1879048193",
    cards=(Card("02:00:0a:00:00:02", "broker"), Card("02:00:0b:00:00:02", "broker-1", up=False)),
    disks=(Disk("/run/vnet/demo/vm/broker/disk.qcow2", "vda", "qcow2"),
           Disk("/run/vnet/demo/vm/broker/seed.img", "vdb", "raw", readonly=True)),
    hostdevs=("0000:01:00.1",), quota=Quota(20_000, 100_000), shares=512,
)  # fmt: skip
DOMAINS = {"tiny": TINY, "full": FULL}


def image(kind: str = "initramfs") -> Image:
    directory, disk = Path("/images/x"), kind == "disk"
    return Image(
        name="x", kind="disk" if disk else "initramfs", directory=directory,
        kernel=None if disk else directory / "kernel", initrd=None if disk else directory / "initrd",
        append="console=ttyS0", disk=directory / "disk.qcow2" if disk else None, memory_bytes=96 << 20,
        agent="/vnet/agent", guest_agent=True,
    )  # fmt: skip
