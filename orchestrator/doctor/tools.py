"""Findings on the programs that labs call."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchestrator.doctor.finding import Finding, State
from orchestrator.kernel.facts import find_tool


@dataclass(frozen=True, slots=True)
class Tool:
    """`version`: a command that prints one; `needed`: without it no lab runs at all."""

    name: str
    version: tuple[str, ...]
    package: str
    without: str
    needed: bool = False


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
    """All programs that labs call, those of every kind of software included."""
    # Imported here, so that the doctor can report a host without pydantic.
    from orchestrator.software.registry import programs

    return (*OURS, *(Tool(p.name, p.version, p.package, p.without) for p in programs()), *BESIDE)


def findings() -> list[Finding]:
    """One finding a tool, with its path and version."""
    return [look(tool) for tool in usual()]


def look(tool: Tool) -> Finding:
    """Whether it is there and says its version."""
    path = find_tool(tool.name)
    if path is None:
        state: State = "missing" if tool.needed else "limited"
        remedy = f"apt-get install {tool.package}"
        return Finding(tool.name, state, "not installed", tool.without, remedy)
    version = Path(path).resolve().name if ".so." in tool.name else first_line(tool, path)
    if version is None:
        remedy = f"apt-get install --reinstall {tool.package}"
        return Finding(tool.name, "limited", f"{path} does not run", tool.without, remedy)
    return Finding(tool.name, "ok", f"{path} ({version})")


def first_line(tool: Tool, path: str) -> str | None:
    """First line that it prints about itself; None if it does not run or stays silent.

    The whole command: a program may have no argument that makes it print its version, and starts with others.
    """
    program, *arguments = tool.version
    argv = [path if program == tool.name else program, *arguments]
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return lines[0] if lines else None
