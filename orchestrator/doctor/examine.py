"""Collects all findings of the doctor, in the order of its output."""

from __future__ import annotations

from orchestrator.doctor import host_kernel, limits, machines, nics, tools, uml, virtual
from orchestrator.doctor.finding import Finding
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.uml.binaries import find_binaries, too_old


def examine() -> list[Finding]:
    """Look at this machine; takes a second or two, changes nothing that outlives it, never hangs."""
    found = host_kernel.findings(host_facts())
    found += uml.findings(find_binaries(), too_old())
    found += virtual.findings() + machines.findings() + nics.findings()
    return found + tools.findings() + limits.findings()
