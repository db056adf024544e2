"""Implements `vnet doctor`, which shows what this machine, or hosts reached by ssh, can do, and the commands
that enable the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import DONE, UNABLE
from orchestrator.cli.output import console, json_option, print_json
from orchestrator.cli.topologies import named_hosts

if TYPE_CHECKING:
    from rich.text import Text

    from orchestrator.doctor import Finding

MARKS = {"ok": ("✔", "green"), "limited": ("!", "yellow"), "missing": ("✘", "red")}


@click.command("doctor")
@named_hosts("Examine these hosts instead, by ssh")
@json_option
def doctor_command(hosts: tuple[str, ...], as_json: bool) -> int:
    """Examine this machine: kernels, qdiscs, cgroups, virtualisation, tools, limits. Changes nothing.

    With --hosts, examine those hosts by ssh instead; the code is copied there, as for a lab.
    Exit status 4 if no lab can run here, or on one of the hosts.

    \b
    Example:  vnet doctor
              vnet doctor --hosts all
    """
    from orchestrator.doctor import examine

    if hosts:
        return _of_hosts(hosts, as_json)
    findings = examine()
    if as_json:
        print_json([finding.to_dict() for finding in findings])
    else:
        _show(findings)
    return DONE if _able(findings) else UNABLE


def _of_hosts(hosts: tuple[str, ...], as_json: bool) -> int:
    from orchestrator.doctor import examine
    from orchestrator.doctor.far import examine_all
    from orchestrator.language.uris import kernel_machine
    from orchestrator.run.prepare import agent_binary
    from orchestrator.topology.hosts import LOCAL
    from orchestrator.topology.inventory import machines

    asked = machines(hosts)
    far = {name: kernel_machine(url) for name, url in asked.items() if url != LOCAL}
    found = examine_all(far, agent_binary()) if far else {}
    found = {name: found[name] if name in far else examine() for name in asked}
    if as_json:
        print_json({name: [one.to_dict() for one in findings] for name, findings in found.items()})
    else:
        for name, findings in found.items():
            console().print(f"{name} ({asked[name]})", soft_wrap=True, highlight=False)
            _show(findings)
    return DONE if all(_carries(findings) for findings in found.values()) else UNABLE


def _show(findings: list[Finding]) -> None:
    out, width = console(), max(len(f.subject) for f in findings)
    for finding in findings:
        out.print(_text(finding, width), soft_wrap=True)


def _text(finding: Finding, width: int) -> Text:
    from rich.text import Text

    mark, style = MARKS[finding.state]
    text = Text.assemble((f"{mark} ", style), (f"{finding.subject:<{width}}  ", "bold"), finding.found)
    indent = "\n" + " " * (width + 4)
    if finding.consequence:
        text.append(indent + finding.consequence, style="dim")
    if finding.remedy:
        text.append(indent + "-> ", style=style).append(finding.remedy)
    return text


def _able(findings: list[Finding]) -> bool:
    """Returns whether this machine can run labs, even with limits: under its own kernel, or under User-Mode
    Linux.
    """
    states = {finding.subject: finding.state for finding in findings}
    return states.get("kernel") == "ok" or states.get("uml") in ("ok", "limited")


def _carries(findings: list[Finding]) -> bool:
    """Returns whether the host's own kernel can run a part of a multi-host lab."""
    return {finding.subject: finding.state for finding in findings}.get("kernel") == "ok"
