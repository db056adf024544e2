"""Checks the needs of virtual machines on this machine: libvirt's binding and driver, jinja2, tap devices, an
account, images.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterable
from pathlib import Path

from contract.plan import Plan
from orchestrator.kernel.protocol import Missing
from orchestrator.lab.vm import account, storage
from orchestrator.project import BINDINGS
from orchestrator.project import PACKAGES as PREPARE

TUN = Path("/dev/net/tun")
PACKAGES = "libvirt-daemon libvirt-daemon-driver-qemu qemu-system-x86 qemu-utils"
EMBEDDED = ("/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so",
            "/usr/lib64/libvirt/connection-driver/libvirt_driver_qemu.so")  # fmt: skip


def missing(plan: Plan) -> list[Missing]:
    """Returns the needs of the plan's virtual machines that this machine lacks, except images; empty for a
    plan without machines.
    """
    first = next((node.name for node in plan.nodes if node.vm is not None), None)
    if first is None:
        return []
    why, found = f"node {first} is a virtual machine", []
    if importlib.util.find_spec("libvirt") is None:
        remedy = f"{BINDINGS} again, with libvirt-dev installed, or apt-get install python3-libvirt"
        found.append(Missing("libvirt's Python binding", why, remedy))
    if importlib.util.find_spec("jinja2") is None:
        found.append(
            Missing("jinja2", f"{why}, and libvirt's XML a template", "apt-get install python3-jinja2")
        )
    if not TUN.exists():
        found.append(Missing(f"{TUN}", f"{why}, and its port is a tap", "modprobe tun"))
    if account.known() is None:
        found.append(
            Missing(f"the account {account.NAMES[0]}", f"{why}, and QEMU runs as it", f"{PREPARE} vm")
        )
    if plan.libvirt.startswith("qemu:///embed") and not any(Path(p).exists() for p in EMBEDDED):
        found.append(
            Missing("libvirt's QEMU driver", f"{why}, run by qemu:///embed", f"apt-get install {PACKAGES}")
        )
    return found


def missing_images(plan: Plan) -> list[Missing]:
    """Returns a need for each image of the plan's machines that this machine lacks, with the command that
    builds it; names each image once.
    """
    wanted = dict.fromkeys(node.vm.image for node in plan.nodes if node.vm is not None)
    return _not_there(plan, wanted) if wanted else []


def growing_disks(plan: Plan, place: Path) -> list[Missing]:
    """Returns a need if the machines' disks can grow beyond the free space at `place`; else an empty list.
    Does not count machines whose image is missing or has no disk.
    """
    from orchestrator.images import ImageError, look, virtual_bytes

    total, count = 0, 0
    for node in plan.nodes:
        if node.vm is None:
            continue
        try:
            disk = look(node.vm.image).disk
        except ImageError:
            continue  # `missing_images` reports it
        if disk is not None:
            total, count = total + max(virtual_bytes(disk), node.vm.disk_bytes), count + 1
    free = shutil.disk_usage(place).free
    if total <= free:
        return []
    what = f"the disks of {count} virtual machines may grow to {total / 1e9:.0f} GB"
    reason = f"{free / 1e9:.0f} GB are free at {place}; a machine that finds no room is paused"
    return [Missing(what, reason, f"have them write less, free disk space, or set {storage.VARIABLE}")]


def _not_there(plan: Plan, wanted: Iterable[str]) -> list[Missing]:
    # The import is here, because most plans have light nodes only.
    from orchestrator.images import ImageError, look

    found = []
    for name in wanted:
        try:
            look(name)
        except ImageError as error:
            what, _, remedy = str(error).rpartition(";")
            node = next(n.name for n in plan.nodes if n.vm is not None and n.vm.image == name)
            found.append(Missing(what or str(error), f"node {node} is made of it", remedy.strip()))
    return found
