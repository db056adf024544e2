"""Compares the endpoints outside the lab that a topology names with those that the command line allows."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Plan
from orchestrator.language.problem import Problem
from orchestrator.topology.loading import problem_in

OPTION = "--allow-outside"


def refused(plan: Plan, allowed: Sequence[str]) -> list[Problem]:
    """Returns one Problem for each endpoint outside the lab that the plan or the command line alone names.

    A file may come from anywhere, so it cannot open a way out of the lab by itself; and an option that no
    node uses may be a slip.
    """
    named = {(node.name, text) for node in plan.nodes for text in node.outside}
    found = [
        problem_in(
            plan.topology,
            ("nodes", node, "outside"),
            text,
            "is outside the lab, and the command line does not allow it",
            f"add `{OPTION} {text}` if this lab may connect to it",
        )
        for node, text in sorted(named)
        if text not in allowed
    ]
    for text in allowed:
        if text not in {one for _, one in named}:
            rule = "is allowed, and no node of the file names it"
            remedy = f"write `outside: {{{text}}}` at a node, or leave the option out"
            found.append(Problem(plan.topology, 0, OPTION, text, rule, remedy))
    return found
