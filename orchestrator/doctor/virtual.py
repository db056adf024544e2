"""Reports on hardware virtualisation: tests KVM by running one instruction in a virtual machine."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.doctor.finding import Finding
from orchestrator.lab.vm import accel, kvm_probe

DEADLINE_S = 5.0
ROOT_ONLY = "labs with virtual machines are root's: sudo vnet doctor looks as root"
KVM = Path("/dev/kvm")


def findings() -> list[Finding]:
    """Returns one finding on KVM of this machine; it also uses the result of the first lab with virtual
    machines since the boot. Takes about DEADLINE_S seconds at most.
    """
    return [kvm(known=accel.remembered())]


def kvm(
    device: Path = KVM, probe: tuple[str, ...] = kvm_probe.COMMAND, deadline_s: float = DEADLINE_S,
    known: accel.Acceleration | None = None,
) -> Finding:  # fmt: skip
    """Returns a finding on whether KVM runs one instruction within `deadline_s`, which does not prove that a
    whole system boots. `known`: the result of the first lab with virtual machines, which boots one as a test;
    None if no such lab ran yet.
    """
    slow = "virtual machines are emulated (TCG): slower by ten and more, CPU figures not comparable"
    if not device.exists():
        return Finding(
            "kvm", "missing", f"no {device}", slow, "enable VT-x or AMD-V in the firmware; modprobe kvm"
        )
    if not os.access(device, os.R_OK | os.W_OK):
        return Finding("kvm", "missing", f"{device} is not ours to open", slow, ROOT_ONLY)
    answer = kvm_probe.ask(deadline_s, probe)
    if answer != "ok":
        return Finding("kvm", "missing", f"{device} is present, its probe fails: {answer}", slow)
    if known is not None:
        return Finding("kvm", "ok", known.why) if known.kvm else Finding("kvm", "missing", known.why, slow)
    consequence = (
        "some hosts run this and still hang with a whole system: a lab with virtual machines boots one first"
    )
    return Finding(
        "kvm", "limited", f"{device} ran a one-instruction machine; a whole system is not proven", consequence
    )
