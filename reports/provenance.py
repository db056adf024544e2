"""Collects the origin of the numbers: versions, kernel, host, parameters, seed, and the command to repeat a
run.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

from contract.manifest import Kernel
from reports.rundir import Run
from reports.study import Study
from reports.virtual import syscall_ns

Pair = tuple[str, str]


def provenance(study: Study) -> list[Pair]:
    """Returns pairs of name and value for all runs; a value lists the different ones if runs differ. With
    several machines it begins with their numbers of runs.
    """
    found: dict[str, list[str]] = {}
    if len(runs := Counter(cell.machine for cell in study.cells if cell.machine)) > 1:
        found["machines of the campaign"] = [f"{name} ({count} runs)" for name, count in sorted(runs.items())]
    for cell in study.cells:
        for name, value in facts(cell.run):
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return [(name, "; ".join(values)) for name, values in found.items()]


def facts(run: Run) -> list[Pair]:
    """Returns the facts of one run, from its manifest and plan; empty ones are left out."""
    m, plan = run.manifest, run.plan
    kernel, host = m.kernel, m.host
    pairs: list[Pair] = [
        ("topology", plan.topology),
        ("lab", run.lab),
        ("seed", str(run.seed)),
        ("lab kernel", _kernel(kernel)),
        ("machine", _machine(kernel, host)),
        ("time", _time(run)),
        ("host", _host(host)),
        ("made on", _host(m.machine)),
        ("nodes", str(len(plan.nodes) or "")),
        ("start of virtual machines", _starts(m.starts)),
        ("state", m.state or "unknown: the manifest is missing"),
    ]
    parameters = m.parameters or plan.parameters
    pairs += [(f"parameter {name}", str(value)) for name, value in sorted(parameters.items())]
    pairs += [(f"version of {name}", str(v)) for name, v in sorted(m.versions.items())]
    return [(name, value) for name, value in pairs if value]


def _time(run: Run) -> str:
    time = run.manifest.time
    return f"{time}, {syscall_ns(run)} ns for each system call of a node" if run.virtual else time


STARTS = {
    "booted": "booted",
    "kept": "booted, saved, and continued from that snapshot",
    "restored": "continued from the snapshot of their boot in an earlier cell",
}


def _starts(starts: dict[str, Any]) -> str:
    """Returns the number of virtual machines for each way in which they started, as text; empty
    without any.
    """
    ways = list((starts.get("nodes") or {}).values())
    return ", ".join(f"{ways.count(way)} {words}" for way, words in STARTS.items() if way in ways)


def _kernel(kernel: Kernel) -> str:
    text = " ".join(str(part) for part in (kernel.get("kind"), kernel.get("release")) if part)
    return f"{text} ({kernel['why']})" if kernel.get("why") else text


def _machine(kernel: Kernel, host: dict[str, Any]) -> str:
    """Returns the name and URL of a remote machine; empty if the lab ran on the machine of the command."""
    return f"{host.get('name', 'unnamed')} ({kernel['machine']})" if kernel.get("machine") else ""


def _host(host: dict[str, Any]) -> str:
    parts = [str(host["cpu"])] if host.get("cpu") else []
    if host.get("cores"):
        parts.append(f"{host['cores']} core{'s' * (host['cores'] != 1)}")
    if host.get("mhz"):
        parts.append(f"{float(host['mhz']):.0f} MHz")
    if host.get("memory_bytes"):
        parts.append(f"{host['memory_bytes'] / 1e9:.1f} GB")
    if host.get("kernel"):
        parts.append(f"Linux {host['kernel']}")
    return ", ".join(parts)


def command(run: Run) -> str:
    """Returns the `vnet run` command that repeats this run with the same topology file, parameters, seed, and
    lab kernel or virtual time. FILE replaces an unknown topology file.
    """
    words = ["vnet", "run", run.plan.topology or "FILE"]
    parameters = run.manifest.parameters or run.plan.parameters
    for name, value in sorted(parameters.items()):
        words += ["-p", f"{name}={value}"]
    words += ["--seed", str(run.seed)]
    if run.virtual:
        return shlex.join([*words, "--time", "virtual"])
    kernel = run.manifest.kernel
    kind = kernel.get("machine") or kernel.get("kind")
    return shlex.join(words + (["--kernel", str(kind)] if kind else []))
