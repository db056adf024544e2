"""Findings on hardware virtualisation: KVM proven by running an instruction, IOMMU for NICs in the loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.doctor.finding import Finding

DEADLINE_S = 5.0
KVM = Path("/dev/kvm")
REMAPPING = Path("/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts")


def findings() -> list[Finding]:
    """KVM and IOMMU of this machine; at most DEADLINE_S."""
    return [kvm(), iommu()]


def kvm(device: Path = KVM, probe: tuple[str, ...] = (), deadline_s: float = DEADLINE_S) -> Finding:
    """Whether a machine can be made with it. One instruction does not prove that a system boots."""
    slow = "virtual machines are emulated (TCG): slower by ten and more, CPU figures not comparable"
    if not device.exists():
        return Finding(
            "kvm", "missing", f"no {device}", slow, "enable VT-x or AMD-V in the firmware; modprobe kvm"
        )
    if not os.access(device, os.R_OK | os.W_OK):
        return Finding(
            "kvm", "missing", f"{device} is not ours to open", slow, "adduser $USER kvm, then log in anew"
        )
    answer = ask(probe or (sys.executable, "-m", "orchestrator.doctor.kvm_probe"), deadline_s)
    if answer != "ok":
        return Finding("kvm", "missing", f"{device} is present, its probe fails: {answer}", slow)
    consequence = (
        "some hosts run this and still hang with a whole system: a lab with virtual machines boots one first"
    )
    return Finding(
        "kvm", "limited", f"{device} ran a one-instruction machine; a whole system is not proven", consequence
    )


def ask(argv: tuple[str, ...], deadline_s: float) -> str:
    """The probe's answer. A process stuck in the kernel is left behind rather than waited for."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        output, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"no answer within {deadline_s:g} s"
    return output.strip() or f"ended with status {process.returncode} and no answer"


def iommu(groups: Path = Path("/sys/kernel/iommu_groups"), remapping: Path = REMAPPING) -> Finding:
    """Whether devices can be given to virtual machines."""
    number = len(list(groups.iterdir())) if groups.is_dir() else 0
    if not number:
        remedy = (
            "enable VT-d or AMD-Vi in the firmware and boot with intel_iommu=on (or amd_iommu=on) iommu=pt"
        )
        consequence = "no NIC can be passed through to a virtual machine; light nodes need none"
        return Finding("iommu", "missing", "no IOMMU groups", consequence, remedy)
    unsafe = remapping.exists() and remapping.read_text().strip() == "Y"
    if unsafe:
        consequence = "interrupts of a passed-through NIC are not isolated"
        return Finding("iommu", "limited", f"{number} groups, interrupt remapping is off", consequence)
    return Finding("iommu", "ok", f"{number} groups")
