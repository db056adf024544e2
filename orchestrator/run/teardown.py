"""Takes down the lab of a run that has ended, and any lab by its name: first by request, then by force."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from contract import manifest
from orchestrator.kernel.protocol import KernelError, LabHandle
from orchestrator.kernel.registry import recorded
from orchestrator.lab import dead
from orchestrator.lab.cleanup import Removed, destroy
from orchestrator.lab.multi_host import host_commands
from orchestrator.lab.state import Owned, processes, read_lab, state_root
from orchestrator.run.directories import RunError
from orchestrator.run.follow import Followed

ENDED = ("complete", "interrupted", "failed")
EXIT_S = 30.0  # the longest wait for the process after its last event
ASKED_S = 20.0  # a lab of 1,000 nodes tears itself down in less; after it, force
FETCHED_S = 600.0  # of another machine: until then its owner may fetch the run; after it, from the beginning
POLL_S = 0.02


class TeardownError(Exception):
    """Something of a lab could not be removed; the text names it."""


def tear_down(
    lab: str, run_dir: Path, handle: LabHandle, followed: Followed, observe: Callable[[dict[str, Any]], None]
) -> None:
    """Waits for the end of a lab that does not stay up, and takes away what it left if it was killed."""
    if followed.killed:
        take_down(lab, politely=False)
    if followed.last is None:
        reap(handle)
        clear(lab, run_dir, observe)


def clear(lab: str, run_dir: Path, observe: Callable[[dict[str, Any]], None]) -> None:
    """Removes the remains of the run's lab if its process was killed; leaves another lab of that name."""
    about = read_lab(state_root() / lab)
    if about.get("run_dir") != str(run_dir.absolute()) or str(about.get("kernel")).startswith("ssh://"):
        return
    if manifest.read(run_dir).get("state") in ENDED:
        return  # it tore itself down, and has said what it could not remove
    try:
        take_down(lab, politely=False)
    except TeardownError as error:
        remedy = f"vnet down {lab}"
        observe({"event": "warning", "code": "teardown", "text": str(error), "remedy": remedy})


def reap(handle: LabHandle) -> int:
    """The exit status of a lab process that has sent its last event."""
    try:
        return handle.wait(EXIT_S)
    except TimeoutError as error:
        raise RunError(f"{error}; `vnet down` ends it") from error


def take_down(lab: str, *, politely: bool = True) -> Removed:
    """Removes all of a lab; politely: by request first, so that it ends its run in order and keeps its data.

    What was removed by force; nothing of it if the lab was gone or went by itself. A run that then still is
    `running` is written as interrupted. Raises TeardownError.
    """
    run_dir = read_lab(state_root() / lab).get("run_dir")
    removed = _take_down(lab, politely)
    if run_dir is not None:
        dead.interrupted(Path(run_dir), f"its lab was killed; `vnet down {lab}` took away what it left")
    return removed


def _take_down(lab: str, politely: bool) -> Removed:
    state_dir = state_root() / lab
    about, owner = read_lab(state_dir), _owner(state_dir)
    elsewhere = str(about.get("kernel", "")).startswith("ssh://")
    if politely and owner is not None:
        _ask(state_dir / "control.sock", owner)
        _gone(owner, FETCHED_S if elsewhere else ASKED_S)
    try:
        kernel = recorded(str(about.get("kernel", "")))
        if kernel is not None and kernel.clean(state_dir):
            return Removed()
    except (KernelError, OSError) as error:
        raise TeardownError(f"lab {lab}: {error}") from error
    elsewhere_still = _on_hosts(state_dir)
    removed = destroy(lab, keep_state=bool(elsewhere_still))
    if elsewhere_still:
        raise TeardownError(f"lab {lab}: " + "; ".join(elsewhere_still))
    if removed.errors:
        raise TeardownError(f"lab {lab}: could not be removed whole: " + "; ".join(removed.errors))
    return removed


def _on_hosts(state_dir: Path) -> list[str]:
    """Take away what a lab over several hosts left there; of hosts that cannot be asked, why, and they stay
    written down.
    """
    ways = host_commands.left(state_dir)
    if not ways:
        return []
    with ThreadPoolExecutor(len(ways)) as pool:
        answers = dict(zip(ways, pool.map(host_commands.down, ways.values()), strict=True))
    left = {host: why for host, why in answers.items() if why is not None}
    host_commands.note(state_dir, {host: ways[host] for host in left})
    return [
        f"host {host}: {why}; what the lab has there stays: repeat `vnet down {state_dir.name}` when it can "
        f"be reached, or give that up with rm -r {state_dir}"
        for host, why in left.items()
    ]


def _owner(state_dir: Path) -> Owned | None:
    """The process that can tear the lab down in order."""
    return next((p for p in processes(state_dir) if p.role == "lab" and p.alive), None)


def _ask(control: Path, owner: Owned) -> None:
    """Requests the teardown over the control socket if the lab serves it, else by a signal."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(control))
            connection.sendall(json.dumps({"id": 1, "op": "down"}).encode() + b"\n")
            connection.recv(65536)
    except OSError:
        if owner.alive:
            os.kill(owner.pid, signal.SIGTERM)


def _gone(owner: Owned, longest_s: float) -> None:
    deadline = time.monotonic() + longest_s
    while owner.alive and time.monotonic() < deadline:
        time.sleep(POLL_S)  # the subject is the process's end, the deadline stands above
