"""`vnet doctor`: what this machine can do, and the commands that would mend the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import DONE, UNABLE
from orchestrator.cli.output import console, json_option, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from orchestrator.doctor import Finding

MARKS = {"ok": ("✔", "green"), "limited": ("!", "yellow"), "missing": ("✘", "red")}


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> int:
    """Look at this machine: kernels, qdiscs, cgroups, virtualisation, tools, limits. Changes nothing.

    Exit status 4 where no lab at all can run here.

    \b
    Example:  vnet doctor
    """
    from orchestrator.doctor import examine

    findings = examine()
    if as_json:
        print_json([finding.to_dict() for finding in findings])
    else:
        out = console()
        for finding in findings:
            out.print(_text(finding, max(len(f.subject) for f in findings)), soft_wrap=True)
    return DONE if _able(findings) else UNABLE


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
    """Whether some kernel can carry a lab: the host's or a User-Mode Linux one."""
    states = {finding.subject: finding.state for finding in findings}
    return states.get("kernel") == "ok" or states.get("uml") in ("ok", "limited")
