"""Implements `vnet ls`, which lists the labs of this user on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.output import console, json_option, note, print_json, table

if TYPE_CHECKING:
    from orchestrator.reservations.model import Reservation
    from orchestrator.reservations.running import RunningLab


@click.command("ls")
@json_option
def ls_command(as_json: bool) -> None:
    """List the labs of this user on this machine, including remains of crashed ones; below them, on standard
    error, labs of other accounts and what any account has reserved now.

    \b
    Example:  vnet ls
    """
    from orchestrator.lab.cleanup import running_labs

    found = [about(name) for name in running_labs()]
    if as_json:
        print_json(found)
    elif not found:
        note("no lab is running")
    else:
        rows = [[lab["lab"], lab["state"], lab["kernel"], lab["nodes"], lab["run_dir"]] for lab in found]
        text = [["" if cell is None else str(cell) for cell in row] for row in rows]
        console().print(table(("lab", "state", "kernel", "nodes", "run directory"), text, right=("nodes",)))
    if not as_json:
        for other in of_others():
            note(f"another account: {other}")
        for one in reserved():
            note(f"reserved: {one}")


def of_others() -> list[RunningLab]:
    """Returns the labs of other accounts on this machine."""
    from orchestrator.reservations import running, store

    us = store.account()
    return [one for one in running.every() if one.uid != us]


def reserved() -> list[Reservation]:
    """Returns the reservations that hold now; warns of a reservations directory that cannot be read."""
    from orchestrator.reservations import store
    from orchestrator.reservations.model import ReservationError

    try:
        every, _ = store.read(store.directory())
    except ReservationError as error:
        note(f"warning: {error}")
        return []
    now = time.time_ns()
    return [one for one in every if one.at(now)]


def about(lab: str) -> dict[str, Any]:
    """Returns {lab, kernel, nodes, run_dir, state} of a lab. `state` is a text from the lab's answer. If the
    lab does not answer, `state` is the reason with a remedy, and `nodes` is None.
    """
    from orchestrator.lab.state import processes, read_lab, state_root

    state_dir = state_root() / lab
    kept = read_lab(state_dir)
    base = {"lab": lab, "kernel": kept.get("kernel"), "nodes": None, "run_dir": kept.get("run_dir")}
    try:
        with Control.connect(state_dir / "control.sock", timeout_s=2) as control:
            answer = control.call("status")
    except ControlError:
        dead = f"dead: {kept['died']}" if "died" in kept else "dead"
        # a machine or a launcher may outlive the lab process, and only the lab process can answer
        if "died" in kept or not any(p.alive for p in processes(state_dir) if p.role == "lab"):
            return {**base, "state": f"{dead}; vnet down {lab} clears it"}
        return {**base, "state": "running: virtual time" if kept.get("time") == "virtual" else "starting"}
    try:
        return {**base, "nodes": answer["nodes"], "state": _state(answer)}
    except KeyError as error:
        return {
            **base,
            "state": f"another version runs it (its status has no {error}); vnet down {lab} ends it",
        }


def _state(answer: dict[str, Any]) -> str:
    from contract import manifest

    if not answer["ready"]:
        return "starting"
    measuring = answer["state"] == "running" and manifest.load(Path(answer["run_dir"])).t0_ns
    return f"running: {answer['phase']}" if measuring else "up"
