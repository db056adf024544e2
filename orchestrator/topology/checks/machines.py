"""Machines: what only a virtual machine has stands on none but a virtual machine, and the reverse."""

from __future__ import annotations

from ..network import Machine
from .report import Report

ONLY_VM = ("image", "memory", "vcpus", "boot_within", "cloud_init")
TINY = "builtin-tiny"
LEAST_MEMORY = 32 << 20  # the tiny kernel with its initramfs does not start in less


def check(report: Report) -> None:
    """Keys that do not go with a machine's kind."""
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            if machine.kind == "vm":
                _vm(report, section, name, machine)
            else:
                _light(report, section, name, machine)


def _light(report: Report, section: str, name: str, machine: Machine) -> None:
    for key in ONLY_VM:
        if getattr(machine, key) is not None:
            report.add((section, name, key), None, "is only for kind vm", "write `kind: vm`, or leave it out")


def _vm(report: Report, section: str, name: str, machine: Machine) -> None:
    if machine.memory_limit is not None:
        rule = "is only for kind light: a virtual machine has no more than its `memory`"
        report.add((section, name, "memory_limit"), None, rule, "write `memory:` instead")
    if machine.boot_within == 0:
        rule = "is no time at all: its agent cannot answer before it starts"
        report.add((section, name, "boot_within"), None, rule, 'write for example "120 s"')
    if machine.image == TINY and machine.vcpus not in (None, 1):
        rule = f"is more than {TINY} can use: its kernel has one CPU"
        report.add((section, name, "vcpus"), machine.vcpus, rule, "leave it out, or write `image: builtin`")
    if machine.memory is not None and machine.memory < LEAST_MEMORY:
        rule = f"is less than {LEAST_MEMORY >> 20} MiB, in which no image of ours starts"
        report.add((section, name, "memory"), f"{machine.memory} B", rule, 'write for example "96 MiB"')
    if machine.cloud_init is not None and builtin(machine.image):
        rule = "needs an image with cloud-init; the built-in ones have none"
        report.add((section, name, "cloud_init"), None, rule, "name a cloud image of your own with `image:`")


def builtin(image: str | None) -> bool:
    """Whether an image is one of ours."""
    return image is None or image in ("builtin", "builtin-nic", TINY)
