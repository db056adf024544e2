"""Checks keys that only VM nodes or only light nodes can have, and the values of their limits."""

from __future__ import annotations

import ipaddress

from ...language.endpoints import split
from ...software.registry import kind_of
from ..containers import SCHEME
from ..nodes import Machine
from .report import Report

ONLY_VM = ("memory", "disk", "vcpus", "boot_within", "cloud_init")
TINY = "builtin-tiny"
FRESH = ("/dev", "/run", "/tmp", "/var/tmp")
COPIED = ("/etc", "/var")
RUN = "/run"  # every node has its own; a copy has the directories that packages declare there
NEVER_WRITTEN = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/sbin", "/usr")
OF_LIGHT = {
    "process_limit": "leave it out",
    "disk_limit": "leave it out; its image has its size",
    "own_core": "leave it out",
}
LEAST_DISK = 64 << 10  # bytes for six directories of a page each, and some files
LEAST_LIMIT = 1 << 20  # bytes; with less, neither a program nor the node's agent starts
LEAST_CORES = 0.001  # the kernel's least quota is 1 ms, its longest period 1 s (kernel/sched/core.c)
LEAST_MEMORY = 32 << 20  # bytes; with less, the tiny kernel with its initramfs does not start


def check(report: Report) -> None:
    """Checks the CPU, memory, disk, mounts and image keys of every node and group, by its kind."""
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            _cpu(report, section, name, machine)
            if machine.kind == "vm":
                _vm(report, section, name, machine)
            else:
                _light(report, section, name, machine)
    _outside(report)


def _cpu(report: Report, section: str, name: str, machine: Machine) -> None:
    limit, reserve = machine.cpu_limit, machine.cpu_reserve
    if limit is not None and limit.cores is not None and limit.cores < LEAST_CORES:
        rule = f"is less than {LEAST_CORES} cores, the least that the kernel can account"
        report.add((section, name, "cpu_limit"), f"{limit.cores:g} cores", rule, "ask for more")
    for unit in ("mhz", "cores"):
        most, least = getattr(limit, unit, None), getattr(reserve, unit, None)
        if most is not None and least is not None and least > most:
            rule = "is more than its cpu_limit"
            report.add((section, name, "cpu_reserve"), None, rule, "reserve at most what it may use")


def _light(report: Report, section: str, name: str, machine: Machine) -> None:
    if machine.memory_limit is not None and machine.memory_limit < LEAST_LIMIT:
        rule = f"is less than {LEAST_LIMIT >> 20} MiB, in which nothing starts"
        report.add(
            (section, name, "memory_limit"), f"{machine.memory_limit} B", rule, 'write for example "64 MiB"'
        )
    disk, memory = machine.disk_limit, machine.memory_limit
    if disk is not None and disk < LEAST_DISK:
        rule = f"is less than {LEAST_DISK >> 10} KiB, in which a node's own directories have no room"
        report.add((section, name, "disk_limit"), f"{disk} B", rule, 'write for example "64 MiB"')
    if disk is not None and memory is not None and disk > memory:
        rule = "is more than its memory_limit, and its files are kept in memory"
        report.add((section, name, "disk_limit"), f"{disk} B", rule, "write less, or raise memory_limit")
    for mode, paths in machine.mounts.by_mode():
        for index, path in enumerate(paths):
            if rule := _unusable(mode, path):
                place = (section, name, "mounts", mode, index)
                report.add(place, path, rule, "name a file or directory of your own")
    for index, path in enumerate(machine.mounts.copied):
        before = machine.mounts.copied[:index]
        above = [top for top in machine.mounts.copied if path.startswith(f"{top}/")] or before.count(path) * [
            path
        ]
        if above:
            place, rule = (section, name, "mounts", "copy", index), f"is in {above[0]}, which is copied, too"
            report.add(place, path, rule, "leave one of them out")
    if machine.image is not None:
        _contained(report, section, name, machine)
    for key in ONLY_VM:
        if getattr(machine, key) is not None:
            report.add((section, name, key), None, "is only for kind vm", "write `kind: vm`, or leave it out")


def _contained(report: Report, section: str, name: str, machine: Machine) -> None:
    """Reports an image of a light node that is not a container image. If it is one, reports mounts, and
    software that is neither in the agent nor a `command:`.
    """
    if machine.image is None or not machine.image.startswith(SCHEME):
        rule, remedy = "is only for kind vm", "write `kind: vm`, `image: oci:PATH`, or leave it out"
        report.add((section, name, "image"), machine.image, rule, remedy)
        return
    if machine.mounts.paths:
        rule = "is of the machine's files, and this node has its image's"
        report.add((section, name, "mounts"), None, rule, "leave it out, or put the file into the image")
    for key, software in machine.software.items():
        kind = kind_of(software)
        if not (kind.in_agent or kind.name == "command"):
            rule = f"{kind.what} is a program of the machine's, and this node has its image's files only"
            remedy = "write a `command:` of a program that is in the image"
            report.add((section, name, "software", key), None, rule, remedy)


def _unusable(mode: str, path: str) -> str:
    """Returns the reason why a path of the machine cannot be mounted in a node; "" if it can."""
    parts = path.split("/")
    if not path.startswith("/") or "\0" in path or {"", ".", ".."} & set(parts[1:]):
        return "is not an absolute path without . and .. in it"
    if mode == "copy" and path == RUN:
        return ""
    if f"/{parts[1]}" in ("/proc", "/sys") or path in FRESH:
        return "is made anew for each node"
    if mode == "copy" and f"/{parts[1]}" not in COPIED:
        return f"is neither {RUN} nor below {' or '.join(COPIED)}, of which nodes can have copies"
    if mode == "write" and (len(parts) == 2 or f"/{parts[1]}" in NEVER_WRITTEN):
        return "belongs to the machine's system, which no node writes"
    return ""


def _vm(report: Report, section: str, name: str, machine: Machine) -> None:
    if machine.memory_limit is not None:
        rule = "is only for kind light: a virtual machine has no more than its `memory`"
        report.add((section, name, "memory_limit"), None, rule, "write `memory:` instead")
    for key, remedy in OF_LIGHT.items():
        if getattr(machine, key) not in (None, False):
            rule = "is only for kind light: a virtual machine's kernel keeps its own"
            report.add((section, name, key), None, rule, remedy)
    if machine.mounts.paths:
        rule = "is only for kind light: a virtual machine has files of its own"
        report.add((section, name, "mounts"), None, rule, "leave it out")
    if machine.image is not None and machine.image.startswith(SCHEME):
        rule = "is only for kind light: a container image has no kernel"
        report.add((section, name, "image"), machine.image, rule, "leave `kind: vm` out")
    if machine.boot_within == 0:
        rule = "is not above zero: its agent cannot answer before it starts"
        report.add((section, name, "boot_within"), None, rule, 'write for example "120 s"')
    if machine.image == TINY and machine.vcpus not in (None, 1):
        rule = f"is more than {TINY} can use: its kernel has one CPU"
        report.add((section, name, "vcpus"), machine.vcpus, rule, "leave it out, or write `image: builtin`")
    if machine.memory is not None and machine.memory < LEAST_MEMORY:
        rule = f"is less than {LEAST_MEMORY >> 20} MiB, in which no image of ours starts"
        report.add((section, name, "memory"), f"{machine.memory} B", rule, 'write for example "96 MiB"')
    if machine.disk is not None and builtin(machine.image):
        rule = "needs an image with a disk; the built-in ones live in memory"
        report.add((section, name, "disk"), None, rule, "name an image of your own with `image:`, or debian")
    if machine.cloud_init is not None and builtin(machine.image):
        rule = "needs an image with cloud-init; the built-in ones have none"
        report.add((section, name, "cloud_init"), None, rule, "name a cloud image of your own with `image:`")


def builtin(image: str | None) -> bool:
    """Returns whether an image is built in; None means the default image, which is built in."""
    return image is None or image in ("builtin", "builtin-nic", "builtin-router", TINY)


def _outside(report: Report) -> None:
    """Reports `outside` at virtual machines, and endpoints in a subnet of the lab."""
    for name, node in report.model.nodes.items():
        path = ("nodes", name, "outside")
        if node.outside and node.kind == "vm":
            rule = "is only for kind light: the network of a virtual machine has no other end on this machine"
            report.add(path, None, rule, "write it at a light node, or give the machine a NIC")
            continue
        for text in node.outside:
            address = ipaddress.ip_address(split(text)[0])
            if (owner := _owner(report, address)) is not None:
                rule = f"is of {owner}, a subnet of this lab"
                report.add(path, text, rule, "name nodes of the lab by their name; this is for others")


def _owner(report: Report, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    """Returns the segment or link of the file whose subnet has the address; None if none has."""
    model = report.model
    subnets = {
        **{f"segment {name}": segment.subnet for name, segment in model.segments.items()},
        **{f"link {name}": link.subnet for name, link in model.links.items()},
    }
    for owner, several in subnets.items():
        for subnet in several or ():
            if address in ipaddress.ip_network(subnet):
                return owner
    return None
