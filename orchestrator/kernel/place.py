"""Finds the machine that runs a lab: this one, or the one that `--kernel ssh://...` or the
libvirt URI names.
"""

from __future__ import annotations

import dataclasses

from contract.plan import Plan
from orchestrator.language.problem import Problem, TopologyError
from orchestrator.language.uris import RemoteMachine, kernel_machine, libvirt_machine


def machine_of(plan: Plan, kernel: str = "auto") -> RemoteMachine | None:
    """Returns the other machine that runs the lab; None for this one. Raises TopologyError if the file and
    `--kernel` contradict.

    The libvirt URI counts only if the plan has virtual machines.
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
    return dataclasses.replace(named, kernel=asked.kernel)


def _contradiction(plan: Plan, other: str) -> Problem:
    rule = f"the whole lab runs on the machine of its libvirt daemon, and {other}"
    return Problem(plan.topology, 0, "libvirt", f'"{plan.libvirt}"', rule, "leave out one of the two")
