"""Runs cells on a worker of an engine, each in a process of its own; the functions here run on the worker.

Notes on the worker's machine (`notes.py`) ensure that no cell runs twice at a time, even if a process is
lost.
"""

from __future__ import annotations

import io
import shutil
import signal
import socket
import tarfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker

from orchestrator.campaign.engines.job import Event, Job
from orchestrator.campaign.engines.notes import BOOT, ENGINE, Note, read_note, settle, write_note
from orchestrator.campaign.engines.resident import Resident
from orchestrator.campaign.engines.task import CAPTURES, Result, Task
from orchestrator.campaign.journal import FINISHED
from orchestrator.lab.errors import LabError
from orchestrator.run.directories import make_dir

HARD_S = 60.0  # time between the first and the second signal to a cell whose task is cancelled
RESOURCE = "vnet-lab"  # Dask resource: each worker has one, and each cell needs one
UNSENT = frozenset({CAPTURES})  # files that stay on the worker's machine


@dataclass
class _Here:
    """The cells that this worker process runs, by sitting and cell. A sitting is a command that runs a
    campaign. Also the sittings that received a stop signal, and the resident process of the sitting that ran
    a cell last.
    """

    jobs: dict[str, Job] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    resident: tuple[str, Resident] | None = None


HERE = _Here()


async def admit(dask_worker: Worker) -> None:
    """Gives the worker one unit of RESOURCE. Each cell needs one unit, so the scheduler sends the worker one
    cell at a time.
    """
    await dask_worker.set_resources(**{RESOURCE: 1.0})


def stop(sitting: str, number: int) -> None:
    """Sends the signal `number` to all running cells of a sitting on this worker; further cells of the
    sitting do not start.
    """
    HERE.stopped.add(sitting)
    for name, job in list(HERE.jobs.items()):
        if name.startswith(f"{sitting} "):
            job.signal(number)


def run_cell(task: Task) -> Result:
    """Runs and reduces a cell; returns its result, or the earlier one if it has ended in this sitting
    (command that runs the campaign). First ends what a lost worker left of the cell on this machine. Runs
    nothing after a stop signal for the sitting: the result is `interrupted`.
    """
    place = _place(task)
    shared = str(place) == task.directory
    note = read_note(place, task.cell)
    if note is not None and note.sitting == task.sitting and note.state:
        return _result(place, note, shared)
    if note is not None:
        settle(note, place)
    if task.sitting in HERE.stopped:
        return Result("interrupted", None, 0.0, socket.gethostname(), BOOT)
    run_dir = make_dir(place / "runs", task.cell)
    begun = Note(task.sitting, uuid.uuid4().hex[:12], BOOT, task.state, run_dir.name)
    ended = _run(task, place, run_dir, begun)
    if ended.state == "unfit":
        shutil.rmtree(run_dir)
    if ended.state in FINISHED:
        write_note(place, task.cell, ended)
    return _result(place, ended, shared)


def _place(task: Task) -> Path:
    """Returns the campaign's directory if it exists on this machine, else `results/CAMPAIGN` below the
    worker's directory.

    Makes the directory of the notes there.
    """
    there = Path(task.directory)
    place = there if (there / ENGINE / task.sitting).exists() else Path.cwd() / "results" / task.campaign
    (place / ENGINE).mkdir(parents=True, exist_ok=True)
    return place


def _run(task: Task, place: Path, run_dir: Path, begun: Note) -> Note:
    (run_dir / "topology.yaml").write_bytes(task.topology)
    request = {**task.request, "file": str(run_dir / "topology.yaml")}
    began = time.monotonic()
    try:
        told = {"plan": task.plan, "request": request, "directory": str(place), "run_dir": str(run_dir)}
        job = _job(task, told, run_dir)
    except (LabError, OSError) as failure:
        return begun.ended("failed", f"its process did not begin: {failure}", time.monotonic() - began)
    write_note(place, task.cell, begun.of(job.owned))
    name = f"{task.sitting} {task.cell}"
    HERE.jobs[name] = job
    if task.sitting in HERE.stopped:  # the stop signal arrived while the job began
        job.signal(signal.SIGTERM)
    try:
        state, error = job.follow(_teller(task, run_dir, begun.attempt), _watch(job))
    finally:
        del HERE.jobs[name]
    return begun.ended(state, error, time.monotonic() - began)


def _job(task: Task, told: dict[str, Any], run_dir: Path) -> Job:
    """Starts a cell's process through the resident process of its sitting, which has the code from the
    beginning of that sitting; makes a new one if there is none or it has ended. Raises LabError, OSError.
    """
    if HERE.resident is not None and HERE.resident[0] == task.sitting:
        with suppress(OSError):
            return Job(told, run_dir, HERE.resident[1])
    if HERE.resident is not None:
        HERE.resident[1].close()
    HERE.resident = (task.sitting, Resident())
    return Job(told, run_dir, HERE.resident[1])


def _teller(task: Task, run_dir: Path, attempt: str) -> Callable[[Event], None]:
    worker = get_worker()
    shared = run_dir.parent.parent == Path(task.directory)
    about = {"number": task.number, "machine": socket.gethostname(), "attempt": attempt}
    about |= {"run": run_dir.name} if shared else {}

    def tell(event: Event) -> None:
        worker.log_event(topic(task.sitting), {**event, **about})

    return tell


def topic(sitting: str) -> str:
    """Returns the Dask topic for the events of all cells of a sitting."""
    return f"vnet-{sitting}"


def _watch(job: Job) -> Callable[[], None]:
    """Returns a function that sends SIGTERM to the cell once its task no longer executes here (it was
    cancelled), and once more after HARD_S.
    """
    worker = get_worker()
    key = worker.get_current_task()
    asked: list[float] = []

    def wanted() -> bool:
        known = worker.state.tasks.get(key)
        return known is not None and known.state == "executing"

    def poll() -> None:
        now = time.monotonic()
        if not wanted() and (not asked or (len(asked) == 1 and now - asked[0] > HARD_S)):
            asked.append(now)
            job.signal(signal.SIGTERM)

    return poll


def _result(place: Path, note: Note, shared: bool) -> Result:
    run_dir = place / "runs" / note.run
    ended = Result(note.state, note.error, note.wall_s, socket.gethostname(), BOOT, note.attempt, note.run)
    if shared or not run_dir.is_dir():
        return ended
    return replace(ended, packed=pack(run_dir), there=str(run_dir))


def pack(run_dir: Path) -> bytes:
    """Returns the files of the run directory, without its captures, as the bytes of a gzipped tar."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for path in sorted(run_dir.iterdir()):
            if path.name not in UNSENT:
                tar.add(path, path.name)
    return packed.getvalue()
