"""Compares a plan with the limits of this machine: capacity, NICs, and the paths that its nodes need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contract.plan import Plan
from orchestrator.kernel import visible
from orchestrator.kernel.protocol import Fit, Missing
from orchestrator.lab.machine import facts, free_bytes
from orchestrator.language.problem import Problem
from orchestrator.plan.capacity import MachineFacts, problems
from orchestrator.plan.nics import NicUse, nic_uses


def fit(plan: Plan, missing: Sequence[Missing], kernel: str, out: Path) -> Fit:
    """Returns the Fit of a plan under a kernel of this machine. It lists what is missing or, if nothing is
    missing, the limits that the plan exceeds.
    """
    return Fit(plan, missing, () if missing else exceeded(plan, kernel, out))


def exceeded(plan: Plan, kernel: str, out: Path) -> list[Problem]:
    """Returns problems of a plan under a kernel of this machine: NICs that are not available (for `host`
    only), exceeded limits, and paths that its nodes cannot see (not for `fake`).
    """
    nics = nic_problems(plan) if kernel == "host" else []
    unseen = visible.problems(plan, kernel) if kernel != "fake" else []
    return nics + problems(plan, facts(kernel, out)) + unseen


def on_any(plan: Plan, out: Path) -> list[Problem]:
    """Returns the problems that a plan has with every kernel of this machine: NICs that are not available,
    and exceeded limits as under a guest kernel (memory, disk, cores, open files).
    """
    return nic_problems(plan) + problems(plan, facts("uml", out))


def of_disk(plan: Plan, out: Path) -> list[Problem]:
    """Returns problems of a plan whose run directory alone is on this machine: too little free disk space."""
    return problems(plan, MachineFacts(disk_available_bytes=free_bytes(out)))


def nic_problems(plan: Plan) -> list[Problem]:
    """Returns a problem with its remedy for every NIC of the plan that is not available here; changes
    nothing.
    """
    uses = nic_uses(plan)
    return _refused(plan, uses) if uses else []


def _refused(plan: Plan, uses: list[NicUse]) -> list[Problem]:
    # Imported here, because most plans use no NIC.
    from orchestrator.lab.nics import held
    from orchestrator.lab.state import state_root
    from orchestrator.nics.facts import look
    from orchestrator.nics.model import NicError
    from orchestrator.nics.resolve import resolve

    try:
        choices = resolve(uses, look(), held(state_root()))
    except NicError as error:
        return [
            Problem(plan.topology, 0, uses[0].place, f'"{uses[0].asked}"', str(error), "see `vnet doctor`")
        ]
    return [
        Problem(plan.topology, 0, c.use.place, f'"{c.use.asked}"', c.refusal.rule, c.refusal.remedy)
        for c in choices
        if c.refusal is not None
    ]
