"""Checks, before a lab is made, that this machine has a plan's NICs and that they are available."""

from __future__ import annotations

from contract.plan import Plan
from orchestrator.language.problem import Problem
from orchestrator.plan.nics import NicUse, nic_uses


def nic_problems(plan: Plan) -> list[Problem]:
    """A problem for every NIC of the plan that is not available here, with its remedy; changes nothing."""
    uses = nic_uses(plan)
    return _refused(plan, uses) if uses else []


def _refused(plan: Plan, uses: list[NicUse]) -> list[Problem]:
    # Imported here: most plans ask for no NIC.
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
