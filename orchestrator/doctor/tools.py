"""Reports which of the programs that labs call are installed, with their versions."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchestrator.doctor.finding import Finding, State
from orchestrator.kernel.facts import find_tool


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that labs call. `version`: a command that prints its version; `package`: its Debian package;
    `without`: the consequence if it is missing; `needed`: no lab runs without it; `built_by`: the command
    that installs it if no Debian package does.
    """

    name: str
    version: tuple[str, ...]
    package: str
    without: str
    needed: bool = False
    built_by: str = ""


OURS = (
    Tool("ip", ("ip", "-V"), "iproute2", "no lab can be built", needed=True),
    Tool("tc", ("tc", "-V"), "iproute2", "no impairment can be set", needed=True),
)
BESIDE = (
    Tool("tcpdump", ("tcpdump", "--version"), "tcpdump", "topologies with captures fail in plan"),
    Tool("tshark", ("tshark", "--version"), "tshark", "vnet packets cannot dissect"),
    Tool(
        "ping", ("ping", "-V"), "iputils-ping", "vnet exec LAB NODE -- ping, the first look at a link, fails"
    ),
    Tool("dot", ("dot", "-V"), "graphviz", "vnet graph draws nothing"),
)


def usual() -> tuple[Tool, ...]:
    """Returns all programs that labs call, including those of every kind of software."""
    # Imported here, so that the doctor can report a host without pydantic.
    from orchestrator.software.registry import programs

    return (
        *OURS,
        *(Tool(p.name, p.version, p.package, p.without, built_by=p.built_by) for p in programs()),
        *BESIDE,
    )


def findings() -> list[Finding]:
    """Returns one finding for each program that labs call, with its path and version if it is usable."""
    return [look(tool) for tool in usual()]


def look(tool: Tool) -> Finding:
    """Returns a finding on whether the program is installed and prints its version: `missing` if it is absent
    and `needed`, else `limited`. A shared library is not run; its file name states the version.
    """
    path = find_tool(tool.name)
    if path is None:
        state: State = "missing" if tool.needed else "limited"
        remedy = tool.built_by or f"apt-get install {tool.package}"
        return Finding(tool.name, state, "not installed", tool.without, remedy)
    version = Path(path).resolve().name if ".so." in tool.name else first_line(tool, path)
    if version is None:
        remedy = tool.built_by or f"apt-get install --reinstall {tool.package}"
        return Finding(tool.name, "limited", f"{path} does not run", tool.without, remedy)
    return Finding(tool.name, "ok", f"{path} ({version})")


def first_line(tool: Tool, path: str) -> str | None:
    """Returns the first line that the version command prints, on either output; None if it does not run,
    takes more than 10 s or prints nothing. The command may be another program, since some programs have no
    argument that prints their version.
    """
    program, *arguments = tool.version
    argv = [path if program == tool.name else program, *arguments]
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return lines[0] if lines else None
