"""Runs the doctor's checks on a host that `far.py` has reached by ssh: `python -m orchestrator.doctor`.

Standard input contains the programs that labs call, as JSON; the findings are written to standard output.
Uses the standard library only.
"""

from __future__ import annotations

import json
import sys

from orchestrator.doctor import host_kernel, limits, machines, nics, virtual
from orchestrator.doctor.tools import Tool, look
from orchestrator.kernel.facts import host_facts


def main() -> None:
    """Prints the findings for multi-host labs as JSON: all except those on User-Mode Linux, which these labs
    cannot use.
    """
    tools = [Tool(**{**one, "version": tuple(one["version"])}) for one in json.load(sys.stdin)]
    found = host_kernel.findings(host_facts()) + virtual.findings() + machines.findings() + nics.findings()
    found += [look(tool) for tool in tools] + limits.findings()
    print(json.dumps([finding.to_dict() for finding in found]))  # noqa: T201  # its output is the answer


main()
