"""Sends a campaign's cells to an engine as tasks; the engine chooses their workers, and repeats lost cells.

Only this process writes the journal. At any time the engine has at most as many cells as workers, so that
Ctrl-C, the end of a process, or a worker that connects late costs little.
"""

from __future__ import annotations

import hashlib
import io
import queue
import shutil
import signal
import socket
import tarfile
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract import codec, manifest
from orchestrator.campaign import journal
from orchestrator.campaign.cells import Todo
from orchestrator.campaign.engines.engine import Engine, EngineError
from orchestrator.campaign.engines.flight import Flight, Stragglers
from orchestrator.campaign.engines.notes import ENGINE
from orchestrator.campaign.engines.opening import opened
from orchestrator.campaign.engines.slurm import Jobs
from orchestrator.campaign.engines.task import Result, Task
from orchestrator.campaign.settings import Settings, request_of
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.home import unpack
from orchestrator.language.kernels import apart
from orchestrator.plan.build import make_plan
from orchestrator.run.directories import make_dir
from orchestrator.run.follow import STOPS
from orchestrator.run.run import Observe
from orchestrator.topology import Cell
from orchestrator.topology.conditions import failing

if TYPE_CHECKING:
    from distributed import Client, Future

    from orchestrator.campaign.engines.workers import Workers

TICK_S = 0.5
GATHER_S = 20  # longest wait in s for a result


def spread(
    engine: Engine, settings: Settings, directory: Path, todo: Todo, total: int, observe: Observe
) -> bool:
    """Runs all cells of `todo` on the engine; returns whether the campaign was interrupted.

    total: number of all cells of the campaign, for the events. Raises EngineError if the engine cannot be
    used or is lost, or if some cells fit none of its machines.
    """
    if not todo:
        return False
    sitting = uuid.uuid4().hex[:12]
    mark = directory.resolve() / ENGINE / sitting
    shutil.rmtree(mark.parent, ignore_errors=True)
    mark.parent.mkdir()
    mark.touch()
    try:
        with opened(engine) as client:
            return _Spread(engine, client, settings, directory, sitting, total, observe).run(todo)
    finally:
        shutil.rmtree(mark.parent, ignore_errors=True)


class _Spread:
    """One execution of a campaign on an engine: submits cells, receives their events and results."""

    def __init__(
        self,
        engine: Engine,
        client: Client,
        settings: Settings,
        directory: Path,
        sitting: str,
        total: int,
        observe: Observe,
    ) -> None:
        from orchestrator.campaign.engines.workers import Workers

        self._engine, self._client, self._settings = engine, client, settings
        self._directory, self._sitting, self._total = directory, sitting, total
        self._observe = observe
        where = f"{socket.gethostname()}:{directory.resolve()}"
        self._key = hashlib.sha256(where.encode()).hexdigest()[:8]
        self._arrived: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._flights: dict[int, Flight] = {}
        self._stragglers = Stragglers()
        self._unfit: list[str] = []
        self._stopped = False
        alone = not apart(settings.kernel, settings.time)
        virtual = settings.time == "virtual"
        self._workers: Workers = Workers(client, observe, alone=alone, virtual=virtual)
        self._jobs = Jobs(engine, client, observe) if engine.kind == "slurm" else None

    def run(self, todo: Todo) -> bool:
        from orchestrator.campaign.engines.worker import topic
        from orchestrator.campaign.engines.workers import FIRST_S

        self._client.subscribe_topic(topic(self._sitting), lambda event: self._arrived.put(("event", event)))
        waiting = deque(todo)
        with _presses() as presses:
            patience_s = float("inf") if self._jobs else FIRST_S
            self._workers.wait(patience_s, lambda: self._over(presses))
            self._tend()  # the first worker may be lost before `_tend` is called again
            while True:
                if presses:
                    self._stop(presses.pop(0))
                while waiting and not self._stopped and len(self._flights) < len(self._workers.admitted):
                    self._submit(*waiting.popleft())
                if not self._flights and (self._stopped or not waiting):
                    break
                self._hear()
        if self._unfit and not self._stopped:
            raise EngineError("\n".join(self._unfit))
        return self._stopped

    def _over(self, presses: list[int]) -> bool:
        self._tend()
        return bool(presses)

    def _tend(self) -> None:
        if self._jobs and not self._stopped:
            self._jobs.look()

    def _submit(self, number: int, cell: Cell) -> None:
        flight = Flight(number, cell, self._task(number, cell))
        self._flights[number] = flight
        self._send(flight)

    def _send(self, flight: Flight, hosts: list[str] | None = None) -> None:
        from orchestrator.campaign.engines.worker import RESOURCE, run_cell

        flight.sent += 1
        future: Future[Result] = self._client.submit(
            run_cell,
            flight.task,
            key=f"vnet-{flight.task.cell}-{self._sitting}-{flight.sent}",
            pure=False,
            resources={RESOURCE: 1},
            workers=hosts,
            priority=-flight.number,
        )
        flight.future = future
        self._await(flight, future)

    def _await(self, flight: Flight, future: Future[Result]) -> None:
        future.add_done_callback(lambda done: self._arrived.put(("done", (flight.number, done.key))))

    def _came(self) -> None:
        """Handles a new worker: sends stranded cells again or, if the campaign is stopped, repeats the
        signal. The scheduler assigns waiting tasks only when a worker connects, and at that time the worker
        does not have its resource yet. So a task whose workers have all left would wait forever.
        """
        if self._stopped:
            self._tell_stop(signal.SIGTERM)
            return
        for flight in self._stranded():
            self._send(flight, self._workers.hosts_but(flight.unfit) if flight.unfit else None)

    def _let_go(self) -> None:
        """Records the cells that no worker has as interrupted, because the campaign was stopped."""
        for flight in self._stranded():
            self._settle(flight, flight.lost())

    def _stranded(self) -> list[Flight]:
        """Releases the pending tasks that are on no worker, and returns their cells."""
        taken = {key for keys in self._client.processing().values() for key in keys}
        found = []
        for flight in self._flights.values():
            future = flight.future
            if future is not None and future.status == "pending" and future.key not in taken:
                future.release()
                found.append(flight)
        return found

    def _task(self, number: int, cell: Cell) -> Task:
        settings = self._settings
        lab = settings.lab or cell.loaded.name
        state = f"{lab}-{self._key}-{number}" if apart(settings.kernel, settings.time) else lab
        request = request_of(settings, cell, state)
        topology = replace(cell.loaded, conditions=failing(request.fail_if))
        plan = make_plan(topology, request.lab, request.seed)
        return Task(
            cell.name,
            number,
            self._sitting,
            f"{self._directory.resolve().name}-{self._key}",
            str(self._directory.resolve()),
            state,
            {**asdict(request), "file": str(request.file), "snapshots": None},
            request.file.read_bytes(),
            codec.to_json(plan),
        )

    def _hear(self) -> None:
        try:
            kind, what = self._arrived.get(timeout=TICK_S)
        except queue.Empty:
            self._tick()
            return
        if kind == "done":
            number, key = what
            flight = self._flights.get(number)
            if flight is not None and flight.future is not None and flight.future.key == key:
                self._done(flight, flight.future)
        elif (event := what[1]).get("number") in self._flights:
            self._event(self._flights[event["number"]], event)

    def _tick(self) -> None:
        self._observe({"event": "tick"})
        try:
            if self._workers.look():
                self._came()
            if self._stopped:
                self._let_go()
        except OSError as error:
            raise self._lost() from error
        self._tend()
        for flight in self._flights.values():
            if text := self._stragglers.late(flight):
                self._observe({"event": "straggler", "number": flight.number, "text": text})

    def _event(self, flight: Flight, event: dict[str, Any]) -> None:
        if event["event"] == "plan" and flight.attempt != event["attempt"]:
            self._begun(flight, event)
        if flight.attempt == event["attempt"]:
            self._observe(event)

    def _begun(self, flight: Flight, event: dict[str, Any]) -> None:
        """Writes to the journal that a cell has begun, with its machine and run directory. If it had begun
        before, its worker was lost; then first writes the end of that attempt as interrupted, and warns.
        """
        if flight.line:
            why = f"its worker on {flight.machine} was lost; the cell runs again on {event['machine']}"
            self._observe({"event": "warning", "number": flight.number, "code": "worker-lost", "text": why})
            journal.end(
                self._directory, {**_kept(flight.line), "state": "interrupted", "error": why, "wall_s": None}
            )
            _interrupted(self._directory / flight.line["run_dir"], why)
        runs = self._directory / "runs"
        run_dir = runs / event["run"] if event.get("run") else make_dir(runs, flight.cell.name)
        flight.begins(event["attempt"], event["machine"], str(run_dir.relative_to(self._directory)))
        journal.begin(self._directory, flight.line)
        about = {"event": "cell", "cell": flight.cell.name, "number": flight.number, "total": self._total}
        self._observe({**about, "machine": flight.machine})

    def _done(self, flight: Flight, future: Future[Result]) -> None:
        """Fetches and records the result of an ended task; waits again if it does not arrive within GATHER_S
        seconds. Records a task that lost several workers or raised an error as failed. Raises EngineError if
        the scheduler is gone.
        """
        from distributed import CancelledError, KilledWorker

        try:
            result = future.result(timeout=GATHER_S)
        except TimeoutError:
            self._await(flight, future)
            return
        except CancelledError as error:
            raise self._lost() from error
        except KilledWorker as error:
            result = flight.failed(f"it took several workers with it, the last: {error.last_worker.address}")
        except Exception as error:  # an error of vNET's own code there: only this cell fails
            result = flight.failed(f"{type(error).__name__}: {error}")
        future.release()
        self._settle(flight, result)

    def _settle(self, flight: Flight, result: Result) -> None:
        if result.state == "unfit":
            self._elsewhere(flight, result)
            return
        del self._flights[flight.number]
        if result.state == "interrupted":
            self._stopped = True
            if not flight.line:
                return  # the cell had not begun
        if not flight.line or flight.attempt != result.attempt:
            run = result.run_dir if result.packed is None else ""
            self._begun(flight, {"attempt": result.attempt, "machine": result.machine, "run": run})
        if result.packed is not None:
            result = _unpacked(result, self._directory / flight.line["run_dir"])
            flight.line["there"] = result.there
        self._stragglers.took(result)
        line = {**_kept(flight.line), "state": result.state, "error": result.error, "wall_s": result.wall_s}
        why = journal.end(self._directory, line)
        event = {
            "event": "cell-end",
            "cell": flight.cell.name,
            "number": flight.number,
            "wall_s": result.wall_s,
            "suspect": why,
        }
        self._observe({**event, "state": result.state, "error": result.error})

    def _elsewhere(self, flight: Flight, result: Result) -> None:
        """Sends a cell that did not fit its machine to the other machines. Records the cell as unfit if none
        is left, or if the campaign is stopped.
        """
        flight.unfit[result.boot] = f"{result.machine}: {result.error}"
        hosts = self._workers.hosts_but(flight.unfit)
        if hosts and not self._stopped:
            self._send(flight, hosts)
            return
        del self._flights[flight.number]
        why = "".join(f"\n  {one}" for one in flight.unfit.values())
        self._unfit.append(f"cell {flight.cell.name}: fits no machine of {self._engine}:{why}")

    def _stop(self, number: int) -> None:
        """Stops the campaign: passes the signal `number` to the running cells, and starts no others."""
        self._stopped = True
        for flight in list(self._flights.values()):
            self._observe({"event": "signal", "number": flight.number})
        self._tell_stop(number)

    def _tell_stop(self, number: int) -> None:
        from orchestrator.campaign.engines.worker import stop

        self._client.run(stop, self._sitting, int(number), on_error="ignore")

    def _lost(self) -> EngineError:
        return EngineError(
            f"--on {self._engine}: the scheduler is gone; the journal keeps the finished runs, and "
            f"`vnet campaign run {self._directory} --on ...` goes on"
        )


def _kept(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "lab"}


def _unpacked(result: Result, run_dir: Path) -> Result:
    """Unpacks the run directory that a worker sent into `run_dir`, and returns the result. If it cannot be
    unpacked, returns the result as failed, with the reason.
    """
    assert result.packed is not None
    try:
        unpack(io.BytesIO(result.packed), run_dir)
    except (KernelError, tarfile.TarError, EOFError, OSError) as error:
        why = f"its files from {result.machine} cannot be unpacked: {error}"
        return replace(result, state="failed", error=why)
    return result


def _interrupted(run_dir: Path, why: str) -> None:
    if manifest.load(run_dir).state not in ("", *manifest.ENDED):
        manifest.ended(run_dir, "interrupted", why)


@contextmanager
def _presses() -> Iterator[list[int]]:
    presses: list[int] = []
    before = {number: signal.signal(number, lambda n, _: presses.append(n)) for number in STOPS}
    try:
        yield presses
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
