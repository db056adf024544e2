"""Runs all checks of the doctor on this machine, in the order of its output."""

from __future__ import annotations

from orchestrator.doctor import host_kernel, limits, machines, nics, tools, uml, virtual
from orchestrator.doctor.finding import Finding
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.uml.binaries import find_binaries, too_old


def examine() -> list[Finding]:
    """Examines this machine and returns all findings. Takes a second or two, never hangs, and leaves the
    machine unchanged.
    """
    found = host_kernel.findings(host_facts())
    found += uml.findings(find_binaries(), too_old())
    found += virtual.findings() + machines.findings() + nics.findings()
    return found + tools.findings() + limits.findings()
