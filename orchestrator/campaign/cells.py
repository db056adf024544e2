"""The cells of a campaign as they run: one by one in this process, or several side by side in their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from capture import manifest
from capture.errors import CaptureError
from orchestrator.campaign import journal
from orchestrator.campaign.journal import Json
from orchestrator.campaign.parallel import Job, run_side_by_side
from orchestrator.campaign.prepare import Request, prepare
from orchestrator.campaign.run import ENDED, Observe, RunError, execute, make_dir
from orchestrator.campaign.settings import Settings, request_of
from orchestrator.campaign.snapshots import snapshots
from orchestrator.campaign.teardown import take_down
from orchestrator.kernel.protocol import KernelError
from orchestrator.topology import Cell

Todo = list[tuple[int, Cell]]
Run = Callable[[Settings, Path, Todo, int, Observe], bool]  # whether it was interrupted


def one_by_one(boot: str) -> Run:
    """One after the other; virtual machines boot in `each` cell, or `once` for all."""

    def run(settings: Settings, directory: Path, todo: Todo, total: int, observe: Observe) -> bool:
        with snapshots(directory, settings, [cell for _, cell in todo], boot) as places:
            for number, cell in todo:
                observe({"event": "cell", "cell": cell.name, "number": number, "total": total})
                request = request_of(settings, cell, snapshots=places.get(cell.index))
                if _run_cell(request, directory, cell, observe) == "interrupted":
                    return True
        return False

    return run


def _run_cell(request: Request, directory: Path, cell: Cell, observe: Observe) -> str:
    prepared = prepare(request, directory, cell.loaded)
    line = _begun(directory, cell, prepared.state)
    run_dir = directory / line["run_dir"]
    began = time.monotonic()
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
        outcome = execute(prepared, run_dir, observe, page=False)  # the campaign's report writes it
        state, error = "failed" if outcome.watchdog else outcome.state, outcome.error
    except (KernelError, RunError, CaptureError) as failure:
        state, error = "failed", str(failure)
    _ended(directory, line, state, error, began, observe)
    return state


def side_by_side(jobs: int) -> Run:
    def run(settings: Settings, directory: Path, todo: Todo, total: int, observe: Observe) -> bool:
        free = [str(slot) for slot in range(1, jobs + 1)]

        def next_job(number: int, cell: Cell) -> Job:
            slot = free.pop(0)
            state = f"{settings.lab or cell.loaded.name}-job{slot}"
            line = _begun(directory, cell, state, slot)
            told = {
                "settings": settings.data(),
                "index": cell.index,
                "directory": str(directory),
                "run_dir": str(directory / line["run_dir"]),
                "state": state,
            }
            return Job(number, line, told)

        def begin(job: Job) -> None:
            observe({"event": "cell", "cell": job.line["cell"], "number": job.number, "total": total})

        def end(job: Job) -> str:
            state, error = job.ended()
            free.append(job.line["slot"])
            _ended(directory, job.line, state, error, job.began, observe, job.number)
            return state

        return run_side_by_side((next_job(n, cell) for n, cell in todo), jobs, observe, begin, end)

    return run


def _begun(directory: Path, cell: Cell, state: str, slot: str | None = None) -> Json:
    """The journal's line of a cell that begins; its run directory is made."""
    run_dir = make_dir(directory / "runs", cell.name)
    line = {**planned(cell), "run_dir": str(run_dir.relative_to(directory)), "lab": state}
    line |= {"slot": slot} if slot else {}
    journal.begin(directory, line)
    return line


def _ended(
    directory: Path,
    line: Json,
    state: str,
    error: str | None,
    began: float,
    observe: Observe,
    number: int = 0,
) -> None:
    kept = {name: value for name, value in line.items() if name != "lab"}
    wall_s = round(time.monotonic() - began, 1)
    journal.end(directory, {**kept, "state": state, "error": error, "wall_s": wall_s})
    event = {"event": "cell-end", "cell": line["cell"], "state": state, "error": error, "wall_s": wall_s}
    observe({**event, "number": number})


def planned(cell: Cell) -> Json:
    return {
        "cell": cell.name,
        "topology": cell.topology,
        "levels": {"topology": cell.loaded.name, **cell.levels},
        **({"point": cell.point.number} if cell.point else {}),
        "repetition": cell.repetition,
        "seed": cell.seed,
    }


def recover(directory: Path) -> None:
    """Settle the cells in flight of a killed campaign: labs taken down, runs kept and marked."""
    for line in journal.in_flight(directory):
        _recover(directory, line)


def _recover(directory: Path, line: Json) -> None:
    if any(ended["run_dir"] == line["run_dir"] for ended in journal.lines(directory)):
        journal.forget(directory, line)  # killed between its end's line and this note's end: nothing is lost
        return
    take_down(line.pop("lab"), politely=False)
    run_dir = directory / line["run_dir"]
    if run_dir.is_dir() and manifest.read(run_dir).get("state") not in ENDED:
        manifest.ended(run_dir, "interrupted", "the campaign was killed in this run; its cell was run again")
    journal.end(
        directory, {**line, "state": "interrupted", "error": "the campaign was killed", "wall_s": None}
    )
