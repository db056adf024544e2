"""Takes down a lab by its name, or the lab of a run that has ended: first by request, then by force."""

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

from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.registry import recorded
from orchestrator.lab import dead
from orchestrator.lab.cleanup import Removed, destroy
from orchestrator.lab.multi_host import host_commands
from orchestrator.lab.state import Owned, processes, read_lab, state_root
from orchestrator.run.follow import Followed

ASKED_S = 20.0  # longest wait in s after a request; a lab of 1,000 nodes needs less
FETCHED_S = 600.0  # longest wait for a lab on another machine, whose owner first fetches the run
POLL_S = 0.02


class TeardownError(Exception):
    """Raised if a part of a lab could not be removed; the text names the part and the reason."""


def tear_down(
    state_dir: Path,
    run_dir: Path,
    followed: Followed,
    observe: Callable[[dict[str, Any]], None],
    *,
    ended: bool,
) -> None:
    """Removes what the run's lab left behind, if its process was killed or ended without a teardown. If that
    fails, raises TeardownError after a kill, and otherwise passes a warning to `observe`. ended: True if the
    lab recorded its end, and so tore itself down. Does nothing to a lab that stays up, to another run's lab
    of that name, and to labs on other machines.
    """
    lab = state_dir.name
    if followed.killed:
        take_down(lab, politely=False)
    if followed.last is not None:
        return
    about = {} if ended else read_lab(state_dir)
    if about.get("run_dir") != str(run_dir.absolute()) or str(about.get("kernel")).startswith("ssh://"):
        return
    try:
        take_down(lab, politely=False)
    except TeardownError as error:
        remedy = f"vnet down {lab}"
        observe({"event": "warning", "code": "teardown", "text": str(error), "remedy": remedy})


def take_down(lab: str, *, politely: bool = True) -> Removed:
    """Removes everything of a lab and returns what was removed by force: nothing if it ended itself.

    politely: requests the lab to end its run first, so that its data is kept. If the run's manifest then
    still has the state `running`, writes `interrupted` there. Raises TeardownError.
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
    """Removes what a multi-host lab left on its hosts; returns one sentence for each host where that failed.

    The state directory keeps those hosts for the next attempt.
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
    """Returns the lab process, which can tear the lab down in order; None if it does not live."""
    return next((p for p in processes(state_dir) if p.role == "lab" and p.alive), None)


def _ask(control: Path, owner: Owned) -> None:
    """Requests the teardown over the control socket; by SIGTERM if the lab does not answer there."""
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
        time.sleep(POLL_S)  # waits until the process has ended; the deadline is checked above
