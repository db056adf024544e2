"""Chooses the kernel of a lab: the requested one, or the first that meets the plan's needs, with the
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from contract.plan import Plan
from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.protocol import KernelError, LabKernel, Missing
from orchestrator.kernel.uml.kernel import UmlKernel

KERNELS: Mapping[str, Callable[[], LabKernel]] = {
    "host": HostKernel,
    "uml": UmlKernel,
}  # in the order of preference


class NoKernel(KernelError):  # noqa: N818  # what is missing, not that it is an error, is the subject
    """No kernel of this machine can carry the plan (exit status 4)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The kernel, and the reason in words for the user and the manifest."""

    kernel: LabKernel
    why: str


def choose(plan: Plan, wanted: str = "auto", kernels: Sequence[LabKernel] | None = None) -> Choice:
    """Chooses a kernel; `wanted`: auto or a kernel's name. NoKernel lists everything that is missing."""
    candidates = (
        [make() for name, make in KERNELS.items() if wanted in ("auto", name)] if kernels is None else kernels
    )
    candidates = [kernel for kernel in candidates if wanted in ("auto", kernel.name)]
    if not candidates:
        raise KernelError(f"--kernel {wanted}: no such kernel; write auto, {' or '.join(KERNELS)}")
    refused: list[tuple[LabKernel, list[Missing]]] = []
    for kernel in candidates:
        missing = kernel.can(plan)
        if not missing:
            return _chosen(kernel, _why(kernel, wanted, refused))
        refused.append((kernel, missing))
    raise NoKernel(_nobody(plan, refused))


def _chosen(kernel: LabKernel, why: str) -> Choice:
    kernel.why = why
    return Choice(kernel, why)


def _why(kernel: LabKernel, wanted: str, refused: Sequence[tuple[LabKernel, list[Missing]]]) -> str:
    if wanted != "auto":
        return f"{kernel.describe()}: asked for"
    if not refused:
        return f"{kernel.describe()}: it has all that the topology needs"
    reasons = "; ".join(
        f"{other.name} lacks {missing[0].what} ({missing[0].reason})" for other, missing in refused
    )
    return f"{kernel.describe()}: {reasons}"


def _nobody(plan: Plan, refused: Sequence[tuple[LabKernel, list[Missing]]]) -> str:
    lines = [f"{plan.topology}: no kernel of this machine can run lab {plan.lab}"]
    names = {kernel.name for kernel, _ in refused}
    for kernel, missing in refused:  # omit a remedy that another line excludes
        apart = [replace(one, other="") if one.other in names else one for one in missing]
        lines += [f"  {kernel.name}: needs {one}" for one in apart]
    return "\n".join(lines)
