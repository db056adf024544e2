"""Builds the arguments and the environment of the lab process, the same under every kernel, and finds the
facts of the real machine for the manifest.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.plan import Plan
from orchestrator.kernel.protocol import Launch
from orchestrator.project import CODE_ROOT
from orchestrator.queueing import QUEUE_KINDS

# The option -S leaves site-packages out, so that Python starts in half the time.
LIGHT = ("-S", "-s", "-m", "orchestrator.lab")


def arguments(launch: Launch, state_dir: Path, agent: Path, prefix: str = "") -> list[str]:
    """Returns the arguments of the interpreter that start `python -m orchestrator.lab`: the plan in the run
    directory, the directories, the agent, the driver (`hosts` or `vm` if the plan needs it), and the mode of
    `launch`. `prefix` precedes the agent's path for a guest, which has the host's files under /host.
    """
    vms = any(node.kind == "vm" for node in launch.plan.nodes)
    # libvirt and jinja2, which virtual machines need, are in site-packages
    start = LIGHT[1:] if vms else LIGHT
    found = [*start, str(launch.run_dir / "plan.json")]
    found += [
        "--run-dir",
        str(launch.run_dir),
        "--state-dir",
        str(state_dir),
        "--agent",
        prefix + str(agent),
    ]
    if launch.plan.hosts:
        found += ["--driver", "hosts"]
    elif vms:
        found += ["--driver", "vm"]
    found += ["--snapshots", str(launch.snapshots)] if vms and launch.snapshots else []
    return found + ["--scenario"] * launch.scenario + ["--keep"] * launch.keep


def with_images_at(plan: Plan, place: str) -> Plan:
    """Returns the plan with container images below directory `place`, where a guest has them."""
    if not any(node.image_root for node in plan.nodes):
        return plan
    nodes = (
        replace(node, image_root=f"{place}/{Path(node.image_root).name}") if node.image_root else node
        for node in plan.nodes
    )
    return replace(plan, nodes=tuple(nodes))


def images_of(plan: Plan) -> Path | None:
    """Returns the directory of the plan's unpacked container images; None if it uses none."""
    return next((Path(node.image_root).parent for node in plan.nodes if node.image_root), None)


def environment(
    base: Mapping[str, str],
    kernel: Mapping[str, str],
    facts: Mapping[str, Any] | None = None,
    url: str = "",
) -> dict[str, str]:
    """Returns the environment of the lab process (docs/contracts.md): a fixed PATH, vNET's code and that of
    queues of plug-ins, `kernel` and `facts` as JSON, and of `base` only the variables of the user's home,
    locale, time zone, terminal, ssh connection, cache and VNET_SILENCE_S.

    facts: those of the real machine; None means this machine's. url: this machine's URL if the user is on
    another machine; then the manifest also records this machine's name.
    """
    facts = machine() if facts is None else facts
    if url:
        kernel, facts = {**kernel, "machine": url}, {"name": os.uname().nodename, **facts}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    # SSH_CONNECTION shows which NIC carries the user's session, which no lab may use; XDG_CACHE_HOME shows
    # where images are.
    names = ("HOME", "TZ", "TERM", "LANG", "SSH_CONNECTION", "XDG_CACHE_HOME", "VNET_SILENCE_S")
    kept = {name: base[name] for name in names if name in base}
    return kept | {
        "PATH": path,
        "PYTHONPATH": os.pathsep.join((os.fspath(CODE_ROOT), *QUEUE_KINDS.directories())),
        "VNET_KERNEL": json.dumps(dict(kernel)),
        "VNET_MACHINE": json.dumps(dict(facts)),
    }


def machine(cpuinfo: str | None = None) -> dict[str, Any]:
    """Returns cpu (model), cores, mhz (highest known rate of core 0), memory_bytes and kernel (release)."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if cpuinfo is None else cpuinfo
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _field(cpuinfo, "model name") or "unknown",
        "cores": os.cpu_count(),
        "mhz": max_mhz(cpuinfo),
        "memory_bytes": pages * page,
        "kernel": os.uname().release,
    }


def max_mhz(cpuinfo: str) -> float | None:
    """Returns the highest clock rate of core 0 in MHz from cpufreq, else the present one of /proc/cpuinfo;
    None if neither has it.
    """
    cpufreq = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if cpufreq.exists():
        return int(cpufreq.read_text()) / 1000  # the value in the file is in kHz
    shown = _field(cpuinfo, "cpu MHz")
    return float(shown) if shown else None


def _field(cpuinfo: str, name: str) -> str | None:
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else None
