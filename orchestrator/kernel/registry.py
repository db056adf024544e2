"""Chooses the kernel of a lab: of the kernels that the plan and the command line allow, the first that can
carry the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from contract.plan import Plan
from orchestrator.kernel.protocol import Fit, KernelError, LabKernel, NoKernel, Wish
from orchestrator.language.kernels import HERE, HOSTS, KERNELS, THERE, WORDS
from orchestrator.language.problem import Problem, TopologyError
from orchestrator.language.uris import RemoteMachine, kernel_machine, libvirt_machine

Refused = Sequence[tuple[LabKernel, Fit]]
AUTO = Wish()


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen kernel, its answer to the plan, and the reason as text for the user and the manifest.

    If `fit` has problems, no kernel can carry the plan; this is then the first kernel that lacks nothing but
    is too small.
    """

    kernel: LabKernel
    fit: Fit
    why: str


def choose(plan: Plan, wish: Wish = AUTO, kernels: Sequence[LabKernel] | None = None) -> Choice:
    """Examines `kernels`, or those that plan and wish allow, and returns the first that can carry the plan;
    if none can, the first that lacks nothing but whose answer has problems.

    Raises NoKernel with everything that is missing if each lacks something, or KernelError for an unknown
    name.
    """
    candidates = meant(plan, wish) if kernels is None else _named(kernels, wish.kernel)
    if not candidates:
        raise KernelError(f"--kernel {wish.kernel}: no such kernel; write {WORDS}")
    refused: list[tuple[LabKernel, Fit]] = []
    for kernel in candidates:
        fit = kernel.examine(plan, wish)
        if not fit.missing and not fit.problems:
            return _chosen(kernel, fit, wish, refused)
        refused.append((kernel, fit))
    for number, (kernel, fit) in enumerate(refused):
        if not fit.missing:
            return _chosen(kernel, fit, wish, refused[:number])
    raise NoKernel(_nobody(plan, refused), [problem for _, fit in refused for problem in fit.problems])


def meant(plan: Plan, wish: Wish) -> list[LabKernel]:
    """Returns the kernels that the plan and the command line allow, in the order of preference. If the plan
    has hosts, these are the kernels for several hosts; if the plan or the wish names another machine in real
    time, that machine's kernel; else the kernels of this machine.
    """
    if plan.hosts:
        return made(HOSTS, plan, wish)
    elsewhere = wish.time == "real" and machine_of(plan, wish.kernel) is not None
    return made(THERE if elsewhere else HERE, plan, wish)


def made(where: str, plan: Plan, wish: Wish) -> list[LabKernel]:
    """Returns the kernels of a place (here, another machine, hosts) that the wish allows, by its time and on
    this machine also by its name; `auto` allows those that are listed. Imports only the modules of these
    kernels.
    """
    kinds = [kind for kind in KERNELS if kind.where == where and wish.time in kind.times]
    if where == HERE:
        kinds = [
            kind for kind in kinds if wish.kernel == kind.name or (wish.kernel == "auto" and kind.listed)
        ]
    return [_class(kind.place).of(plan, wish) for kind in kinds]


def recorded(kernel: str) -> type[LabKernel] | None:
    """Returns the class of the real-time kernel that a lab's record names, by its name or by its machine's
    URL; None if there is none.
    """
    name = kernel.partition("://")[0]
    return next((_class(kind.place) for kind in KERNELS if kind.name == name and "real" in kind.times), None)


def _class(place: str) -> type[LabKernel]:
    module, _, name = place.partition(":")
    found: type[LabKernel] = getattr(import_module(module), name)
    return found


def _named(kernels: Sequence[LabKernel], wanted: str) -> list[LabKernel]:
    return [kernel for kernel in kernels if wanted in ("auto", kernel.name)]


def _chosen(kernel: LabKernel, fit: Fit, wish: Wish, refused: Refused) -> Choice:
    kernel.why = fit.why or f"{kernel.described}: {_reason(wish, refused)}"
    return Choice(kernel, fit, kernel.why)


def _reason(wish: Wish, refused: Refused) -> str:
    if wish.kernel != "auto":
        return "asked for"
    return "; ".join(_lacks(*one) for one in refused) or "it has all that the topology needs"


def _lacks(kernel: LabKernel, fit: Fit) -> str:
    if fit.missing:
        return f"{kernel.name} lacks {fit.missing[0].what} ({fit.missing[0].reason})"
    return f"{kernel.name} is too small ({fit.problems[0].path}: {fit.problems[0].rule})"


def _nobody(plan: Plan, refused: Refused) -> str:
    lines = [f"{plan.topology}: no kernel of this machine can run lab {plan.lab}"]
    names = {kernel.name for kernel, _ in refused}
    for kernel, fit in refused:  # leaves out a remedy that another line excludes
        apart = [replace(one, other="") if one.other in names else one for one in fit.missing]
        lines += [f"  {kernel.name}: needs {one}" for one in apart]
    return "\n".join(lines)


def machine_of(plan: Plan, kernel: str = "auto") -> RemoteMachine | None:
    """Returns the other machine that runs the lab; None for this one. Raises TopologyError if the file and
    `--kernel` contradict.

    The plan's libvirt URI counts only if the plan has virtual machines and the kernel is not `fake`.
    """
    asked = kernel_machine(kernel) if kernel.startswith("ssh:") else None
    vms = any(node.kind == "vm" for node in plan.nodes)
    named = libvirt_machine(plan.libvirt) if vms and kernel != "fake" else None
    if named is None:
        return asked
    if asked is None and kernel != "auto":
        raise TopologyError([_contradiction(plan, f"--kernel {kernel} means this one")])
    if asked is None:
        return named
    if (asked.host, asked.user, asked.port) != (named.host, named.user, named.port):
        raise TopologyError([_contradiction(plan, f"--kernel {kernel} means another one")])
    return replace(named, kernel=asked.kernel)


def _contradiction(plan: Plan, other: str) -> Problem:
    rule = f"the whole lab runs on the machine of its libvirt daemon, and {other}"
    return Problem(plan.topology, 0, "libvirt", f'"{plan.libvirt}"', rule, "leave out one of the two")
