"""Finds in a guest's console output why the guest ended, and states the remedy."""

from __future__ import annotations

from pathlib import Path

from orchestrator.project import BUILD_KERNEL

TAIL = 20
BEFORE, AFTER = 12, 5  # numbers of lines shown before and after a sign
SIGNS = (  # the first that matches counts: text on the console, its meaning, the remedy
    (
        "Out of memory and no killable processes",
        "the guest ran out of memory",
        "use fewer nodes, or free memory",
    ),
    (
        "The system was going to sleep forever",
        "everything in the lab waits for ever: no timer is left that could end it",
        "keep the console's log and report it",
    ),
    ("vnet-boot: failed:", "the guest's set-up failed", "the line itself says where"),
    ("Kernel panic", "the guest's kernel panicked", "keep the console's log and report it"),
    (
        "Failed to allocate",
        "the machine refused the guest's memory",
        "free memory, or set TMPDIR to another directory",
    ),
    (
        "tracing thread failed",
        "this machine forbids ptrace",
        f"use a kernel that knows seccomp=on: {BUILD_KERNEL}",
    ),
    ("ptrace", "this machine forbids ptrace", f"use a kernel that knows seccomp=on: {BUILD_KERNEL}"),
)


def cause(console: str, reason: str | None, status: int | None) -> str:
    """Returns in a few words why a guest ended without the lab's exit status: `reason` if there is one, else
    the cause that the console shows.
    """
    return reason or _sign(console)[0] or f"the guest ended by itself (status {status}) before the lab did"


def failure(console: str, reason: str | None, status: int | None, path: Path) -> str:
    """Returns an error text: the cause, the remedy, and the console's lines around the sign of the cause, or
    its last ones.
    """
    _, remedy, place = _sign(console)
    helps = f"; {remedy}" if remedy and not reason else ""
    lines = console.splitlines()
    shown = lines[max(0, place - BEFORE) : place + AFTER] if place is not None else lines[-TAIL:]
    words = "\n".join(f"  {line}" for line in shown) or "  (nothing)"
    return f"uml: {cause(console, reason, status)}{helps}. {path} says\n{words}"


def warnings(console: str) -> list[dict[str, str]]:
    """Returns one warning, with the number of cases, if the guest's kernel killed processes for lack of
    memory; else an empty list.
    """
    killed = [
        line
        for line in console.splitlines()
        if line.lstrip("[0123456789.] ").startswith("Out of memory: Killed")
    ]
    if not killed:
        return []
    text = f"the guest's kernel was out of memory {len(killed)} times: {killed[0].strip()}"
    return [
        {
            "code": "guest-out-of-memory",
            "text": text,
            "remedy": "use fewer nodes, or free memory for the guest",
        }
    ]


def _sign(console: str) -> tuple[str | None, str | None, int | None]:
    """Returns meaning, remedy and line number of the first of SIGNS that the console has; None for all three
    if it has none.

    The line matters because the stack that follows a panic rarely shows the cause.
    """
    lines = console.splitlines()
    for text, meaning, remedy in SIGNS:
        for number, line in enumerate(lines):
            if text in line:
                return meaning, remedy, number
    return None, None, None
