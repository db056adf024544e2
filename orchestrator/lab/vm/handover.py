"""Lends taps to a libvirt daemon, which opens them in its own network namespace, while a domain starts.

Each tap leaves the core namespace under a name unique to the lab, with an alias that names its lab, and
returns when QEMU has opened it. After a crash in between, the alias identifies the lab's devices.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable

from contract.plan import Interface, Plan
from orchestrator.lab import tools
from orchestrator.lab.errors import LabError


def lent_name(lab: str, port: str) -> str:
    """Returns the device name of a lent tap: 15 characters, by a hash of lab and port."""
    return "vn" + hashlib.sha256(f"{lab}/{port}".encode()).hexdigest()[:13]


def mark(lab: str) -> str:
    """Returns the alias of a device that the lab has lent."""
    return f"vnet {lab}"


def lend(plan: Plan, cards: Iterable[Interface]) -> None:
    """Moves taps from the core namespace to the namespace of this process, under lent names and with the
    lab's alias. Raises LabError if `ip` fails.
    """
    lines = []
    for card in cards:
        name = lent_name(plan.lab, card.port)
        lines += [
            f"link set dev {card.port} down", f"link set dev {card.port} name {name}",
            f'link set dev {name} alias "{mark(plan.lab)}"', f"link set dev {name} netns {os.getpid()}",
        ]  # fmt: skip
    tools.run_batch("ip", plan.core_netns, "".join(f"{line}\n" for line in lines), "taps lent to libvirt")


def take_back(plan: Plan, node: str, cards: Iterable[Interface]) -> None:
    """Moves those of the taps that are lent back to the core namespace, and repeats the plan's steps for all
    of them (bridge, state). Raises LabError if a step fails, as for a tap that no longer exists.
    """
    # a module of the planner, which labs of light nodes do not load
    from orchestrator.plan.steps import tap_again

    lent = {entry["ifname"] for entry in marked(plan.lab)}
    for card in cards:
        name = lent_name(plan.lab, card.port)
        if name in lent:
            _ip(["link", "set", "dev", name, "netns", plan.core_netns])
            tools.run_batch(
                "ip", plan.core_netns, f"link set dev {name} name {card.port}\n", f"port of {node}"
            )
        for step in tap_again(plan, node, card):
            tools.run_step(step)


def marked(lab: str) -> list[dict[str, object]]:
    """Returns the devices in this namespace that the lab has lent, as `ip -j link` shows them."""
    said = subprocess.run(["ip", "-j", "link", "show"], capture_output=True, text=True, check=False)
    return [e for e in json.loads(said.stdout or "[]") if e.get("ifalias") == mark(lab)]


def remove(lab: str) -> list[str]:
    """Deletes the lab's lent devices that a crash left behind; returns their names. Raises LabError if one
    cannot be deleted.
    """
    names = [str(entry["ifname"]) for entry in marked(lab)]
    for name in names:
        _ip(["link", "del", "dev", name])
    return names


def _ip(arguments: list[str]) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
