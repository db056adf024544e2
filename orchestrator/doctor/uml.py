"""Reports on User-Mode Linux: the kernels on this machine, virtual time, memory, and missing requirements of
guests.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.doctor.finding import Finding
from orchestrator.kernel.protocol import KernelError, Missing
from orchestrator.kernel.uml import boot
from orchestrator.kernel.uml.binaries import UmlBinary
from orchestrator.kernel.uml.kernel import missing_kernel, modules_missing
from orchestrator.kernel.uml.needs import missing_root, missing_xsave
from orchestrator.kernel.virtual.kernel import is_ours
from orchestrator.project import BUILD_KERNEL

INSTALL = "apt-get install user-mode-linux kmod"


def findings(binaries: Sequence[UmlBinary], old: Sequence[UmlBinary] = ()) -> list[Finding]:
    """Returns findings on the kernel that `--kernel uml` boots, on that of `--time virtual`, on guests'
    memory, and on each requirement of guests that this machine lacks.

    `old`: kernels that are installed but too old for this processor.
    """
    needs = lacking("uml guests", missing_root(), "no lab runs under --kernel uml")
    needs += lacking(
        "uml by seccomp", missing_xsave(), "labs under uml are slower, --time virtual is refused"
    )
    return [_binary(binaries, old), virtual_time(binaries), _memory(), *needs]


def lacking(topic: str, missing: Sequence[Missing], consequence: str) -> list[Finding]:
    """Converts each requirement in `missing` to a finding with the subject `topic`."""
    return [Finding(topic, "missing", f"{m.what}: {m.reason}", consequence, m.remedy) for m in missing]


def virtual_time(binaries: Sequence[UmlBinary]) -> Finding:
    """Returns a finding on whether a kernel for `--time virtual` exists; `limited` if it was not built from
    the present source. Debian's kernel and the fallback of `make kernel` support real time only.
    """
    for binary in binaries:
        if is_ours(binary.path):
            found = f"{binary.path} ({binary.describe()})"
            if binary.made == "source":
                return Finding("virtual time", "ok", found)
            consequence = "runs repeat, but perhaps not those of another machine with the present kernel"
            return Finding("virtual time", "limited", found, consequence, BUILD_KERNEL)
    found = binaries[0].describe() if binaries else "no User-Mode Linux kernel"
    consequence = "vnet run --time virtual is refused; labs run in real time"
    return Finding("virtual time", "missing", f"{found}: does not know it", consequence, BUILD_KERNEL)


def _binary(binaries: Sequence[UmlBinary], old: Sequence[UmlBinary]) -> Finding:
    if not binaries:
        consequence = "labs need root and this machine's own kernel"
        missing = missing_kernel(old)
        found = f"{missing.what}: {missing.reason}"
        return Finding("uml", "missing", found, consequence, BUILD_KERNEL if old else INSTALL)
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
        return Finding("uml", "limited", found, consequence, BUILD_KERNEL)
    return Finding("uml", "ok", found)


def _memory() -> Finding:
    try:
        directory = boot.memory_directory(boot.memory_bytes(1))
    except KernelError as error:
        return Finding("uml memory", "missing", str(error), "no lab runs under --kernel uml")
    return Finding("uml memory", "ok", f"{directory}: programs may be mapped from there")
