"""Checks the needs of a User-Mode Linux guest on this machine: files that belong to root, memory, XSAVE."""

from __future__ import annotations

import os
from pathlib import Path

from contract.plan import Plan
from orchestrator.kernel.protocol import KernelError, Missing
from orchestrator.kernel.uml import boot

# the first program of the guest; it is set-uid, so it runs as the owner of the file
MOUNT = Path("/bin/mount")


def missing(plan: Plan) -> list[Missing]:
    """Returns the reasons why this machine cannot boot a guest for this lab; empty if it can."""
    return missing_root() + missing_memory(plan) + missing_way_out(plan)


def missing_way_out(plan: Plan) -> list[Missing]:
    """Reports captures that are sent to another machine, because a guest cannot reach one."""
    sent = [f"capture {point.name} goes to {point.to}" for point in plan.captures if point.to]
    return (
        [Missing("a way out of the guest", sent[0], "leave out `to`, or use --kernel host")] if sent else []
    )


def missing_root(mount: Path = MOUNT) -> list[Missing]:
    """Returns a missing need if `mount` does not belong to uid 0.

    In a user namespace without uid 0, the set-uid program would run in the guest as another user.
    """
    owner = mount.stat().st_uid if mount.exists() else 0
    if owner == 0:
        return []
    reason = f"here {mount} belongs to uid {owner}: this user namespace has no uid 0"
    return [
        Missing(
            "root's files as root's", reason, "enter it with unshare --map-root-user, or run outside of it"
        )
    ]


def missing_memory(plan: Plan) -> list[Missing]:
    """Returns the reason why the machine cannot give the lab's guest its memory; empty if it can."""
    try:
        boot.memory_directory(boot.memory_of(plan))
    except KernelError as error:
        return [Missing("memory for the guest", str(error), "see there")]
    return []


def missing_xsave(cpuinfo: str | None = None) -> list[Missing]:
    """Returns a missing need if an x86-64 processor has no XSAVE, without which User-Mode Linux cannot
    intercept system calls by seccomp. cpuinfo: the text of /proc/cpuinfo; None: this machine's.
    """
    text = Path("/proc/cpuinfo").read_text() if cpuinfo is None else cpuinfo
    if os.uname().machine != "x86_64" or " xsave" in text:
        return []
    remedy = "give a virtual machine its host's processor (-cpu host), or use --time real"
    return [
        Missing(
            "XSAVE in the processor", "virtual time takes system calls by seccomp, which needs it", remedy
        )
    ]
