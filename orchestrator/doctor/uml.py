"""Findings on User-Mode Linux: which kernels there are and whether a lab of any size fits."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.doctor.finding import Finding
from orchestrator.kernel import boot
from orchestrator.kernel.binaries import UmlBinary
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.uml import modules_missing

INSTALL = "apt-get install user-mode-linux kmod"
BUILD = "make kernel"


def findings(binaries: Sequence[UmlBinary]) -> list[Finding]:
    """The kernel that `--kernel uml` would boot, and the memory it would lie in."""
    return [_binary(binaries), _memory()]


def _binary(binaries: Sequence[UmlBinary]) -> Finding:
    if not binaries:
        consequence = "labs need root and this machine's own kernel"
        return Finding("uml", "missing", "no User-Mode Linux kernel", consequence, INSTALL)
    first = binaries[0]
    found = f"{first.path} ({first.describe()})"
    if reason := modules_missing(first):
        return Finding(
            "uml", "missing", f"{found}; {reason}", "it would boot without bridge and netem", INSTALL
        )
    if not first.seccomp:
        consequence = (
            "works; the kernel of our own starts programs five times as fast and keeps latencies lower"
        )
        return Finding("uml", "limited", found, consequence, BUILD)
    return Finding("uml", "ok", found)


def _memory() -> Finding:
    try:
        directory = boot.memory_directory(boot.memory_bytes(1))
    except KernelError as error:
        return Finding("uml memory", "missing", str(error), "no lab runs under --kernel uml")
    return Finding("uml memory", "ok", f"{directory}: programs may be mapped from there")
