"""Runs a campaign's cells one by one in this process, and writes begin and end of each to the journal."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

from capture.errors import CaptureError
from contract import manifest
from orchestrator.campaign import journal
from orchestrator.campaign.journal import Json
from orchestrator.campaign.settings import Settings, request_of
from orchestrator.campaign.snapshots import snapshots
from orchestrator.kernel.protocol import KernelError
from orchestrator.lab.errors import LabError
from orchestrator.lab.state import NAME_IN_USE, in_use, state_root
from orchestrator.language.problem import TopologyError
from orchestrator.run.directories import RunError, make_dir
from orchestrator.run.prepare import Prepared, Request, prepare
from orchestrator.run.run import Observe, execute
from orchestrator.run.teardown import take_down
from orchestrator.topology import Cell

# These exceptions end a cell as failed, here and in a separate process; the campaign continues.
FAILURES = (KernelError, LabError, RunError, CaptureError, TopologyError, OSError, ValueError)
LOOK_S = 0.5  # interval of checks whether a lab's name is free
Todo = list[tuple[int, Cell]]


def one_by_one(
    boot: str, settings: Settings, directory: Path, todo: Todo, total: int, observe: Observe
) -> bool:
    """Runs the cells of `todo` (number, cell) in order, until one is interrupted; returns whether one was.
    Goes on after a failed cell. boot: with `each`, virtual machines boot in each cell; with `once`, cells
    share snapshots of booted ones. total: number of all cells of the campaign, for the events.
    """
    with snapshots(directory, settings, [cell for _, cell in todo], boot) as places:
        for number, cell in todo:
            observe({"event": "cell", "cell": cell.name, "number": number, "total": total})
            request = request_of(settings, cell, snapshots=places.get(cell.index))
            if _run_cell(request, directory, number, cell, observe) == "interrupted":
                return True
    return False


def _run_cell(request: Request, directory: Path, number: int, cell: Cell, observe: Observe) -> str:
    """Runs cell `number` and returns its end state; first waits until no other lab uses its name. If another
    lab takes the name in between, waits and runs the cell again.
    """
    prepared = prepare(request, directory, cell.loaded)
    while True:
        _wait_for_name(prepared.state_dir.name, observe)
        line = _begun(directory, number, cell, prepared.state_dir.name)
        began = time.monotonic()
        state, error = _executed(prepared, request, directory / line["run_dir"], observe)
        if state != "failed" or NAME_IN_USE not in (error or ""):
            _ended(directory, line, state, error, began, observe)
            return state
        shutil.rmtree(directory / line["run_dir"])  # another lab took the name first, so no run took place
        journal.forget(directory, line)


def _wait_for_name(lab: str, observe: Observe) -> None:
    """Waits until no lab runs in the state directory `lab`; if it must wait, observes one `waits` event."""
    state_dir = state_root() / lab
    if in_use(state_dir):
        text = f"lab {lab}: {NAME_IN_USE} ({state_dir}); waits until that lab has ended (or see --lab)"
        observe({"event": "waits", "text": text})
    while in_use(state_dir):
        time.sleep(LOOK_S)


def _executed(
    prepared: Prepared, request: Request, run_dir: Path, observe: Observe
) -> tuple[str, str | None]:
    observe(
        {
            "event": "plan",
            "plan": prepared.plan,
            "why": prepared.why,
            "time": request.time,
            "run_dir": str(run_dir),
        }
    )
    try:
        outcome = execute(prepared, run_dir, observe, page=False)  # the campaign's report writes the page
        return "failed" if outcome.watchdog else outcome.state, outcome.error
    except FAILURES as failure:
        return "failed", str(failure)


def _begun(directory: Path, number: int, cell: Cell, state: str) -> Json:
    """Makes the run directory of a cell and writes to the journal that it has begun, with the name of its
    state directory (`state`); returns that line.
    """
    run_dir = make_dir(directory / "runs", cell.name)
    place = {"number": number, "run_dir": str(run_dir.relative_to(directory)), "lab": state}
    line = {**planned(cell), **place}
    journal.begin(directory, line)
    return line


def _ended(
    directory: Path, line: Json, state: str, error: str | None, began: float, observe: Observe
) -> None:
    kept = {name: value for name, value in line.items() if name != "lab"}
    wall_s = round(time.monotonic() - began, 1)
    why = journal.end(directory, {**kept, "state": state, "error": error, "wall_s": wall_s})
    told = {"cell": line["cell"], "state": state, "error": error, "wall_s": wall_s, "suspect": why}
    observe({"event": "cell-end", **told})


def planned(cell: Cell) -> Json:
    """Returns the fields of a cell that campaign.json and the journal have in common: name, topology, levels,
    the point of a search, repetition and seed.
    """
    return {
        "cell": cell.name,
        "topology": cell.topology,
        "levels": {"topology": cell.loaded.name, **cell.levels},
        **({"point": cell.point.number} if cell.point else {}),
        "repetition": cell.repetition,
        "seed": cell.seed,
    }


def recover(directory: Path) -> None:
    """Ends the cells that a killed campaign left running: takes down their labs, and marks their runs as
    interrupted in manifest and journal.
    """
    for line in journal.in_flight(directory):
        _recover(directory, line)


def _recover(directory: Path, line: Json) -> None:
    if any(ended.get("run_dir") == line["run_dir"] for ended in journal.lines(directory)):
        # the campaign was killed after it recorded the cell's end, so only this note is left
        journal.forget(directory, line)
        return
    lab = line.pop("lab", None)
    here = line.get("machine") in (None, socket.gethostname())
    if lab is not None and here:  # for a lab on another machine, the worker there has ended it
        take_down(lab, politely=False)
    run_dir = directory / line["run_dir"]
    if run_dir.is_dir() and manifest.load(run_dir).state not in manifest.ENDED:
        manifest.ended(run_dir, "interrupted", "the campaign was killed in this run; its cell was run again")
    journal.end(
        directory, {**line, "state": "interrupted", "error": "the campaign was killed", "wall_s": None}
    )
