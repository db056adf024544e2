"""The kernel for a plan: the first that can run it and that is large enough for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contract.plan import Plan
from orchestrator.campaign import filters, visible
from orchestrator.campaign.facts import facts
from orchestrator.campaign.hardware import nic_problems
from orchestrator.campaign.place import machine_of
from orchestrator.kernel.choose import Choice, NoKernel, choose
from orchestrator.kernel.protocol import LabKernel
from orchestrator.language.problem import Problem, TopologyError
from orchestrator.plan.capacity import problems


def choose_fitting(
    plan: Plan, wanted: str, candidates: Sequence[LabKernel] | None, out: Path
) -> tuple[Choice, list[Problem]]:
    """The chosen kernel, and the limits that the plan exceeds there; raises as `choose`.

    If this machine's kernel is too small, for example in neighbours (gc_thresh3), and was not requested,
    a lab kernel is taken, which has limits of its own.
    """
    choice = choose(plan, wanted, candidates)
    found = too_large(plan, choice.kernel.name, out)
    if not found or wanted != "auto" or choice.kernel.name != "host":
        return choice, found
    try:
        own = choose(plan, "uml", candidates)
    except NoKernel:
        return choice, found
    if too_large(plan, "uml", out):
        return choice, found
    own.kernel.why = f"{own.kernel.describe()}: host is too small ({found[0].path}: {found[0].rule})"
    return Choice(own.kernel, own.kernel.why), []


def too_large(plan: Plan, kernel: str, out: Path) -> list[Problem]:
    """Problems of a plan under a kernel of this machine: exceeded limits, missing NICs, hidden paths."""
    nics = nic_problems(plan) if kernel == "host" else []
    unseen = visible.problems(plan, kernel) if kernel != "fake" else []
    return nics + problems(plan, facts(kernel, out)) + unseen


def insist_it_fits(plan: Plan, out: Path = Path()) -> None:
    """TopologyError where no kernel that a run would choose can hold the plan, or tcpdump refuses one of its
    filters; makes nothing.

    Where no kernel here can carry the plan at all, another machine may be meant: memory, disk, bridges and
    the limits of a guest are held against it all the same. Machines that the file names are asked by a run,
    and by nothing that only reads files.
    """
    found = filters.planned(plan)
    if not plan.hosts and machine_of(plan) is None:
        try:
            found += choose_fitting(plan, "auto", None, out)[1]
        except NoKernel:
            found += nic_problems(plan) + problems(plan, facts("uml", out))
    if found:
        raise TopologyError(found)
