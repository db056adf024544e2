"""Executes one run from its lab to its report, for `vnet run`, `vnet verify` and each cell of a campaign.

Prints nothing, and passes events to `observe` (docs/contracts.md): those of the lab, and its own: the phases
`reduce` and `report`, `signal` (Ctrl-C) and `tick`.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from capture.errors import CaptureError
from contract import manifest, seal
from contract.manifest import Manifest
from contract.plan import Plan
from orchestrator.kernel.ahead import load_reports
from orchestrator.kernel.protocol import LabHandle, Launch
from orchestrator.plan.bounds.record import record_bounds
from orchestrator.plan.graph import GraphError, graph
from orchestrator.run.directories import RunError
from orchestrator.run.follow import Followed, follow
from orchestrator.run.identity import complete_manifest, record_hashes
from orchestrator.run.located import Places
from orchestrator.run.prepare import Prepared, with_images
from orchestrator.run.teardown import take_down, tear_down

Event = dict[str, Any]
Observe = Callable[[Event], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `error` is None without an error, `page` is None if no report was written."""

    run_dir: Path
    state: str  # complete, interrupted or failed
    suspect: bool
    error: str | None
    warnings: tuple[Event, ...]
    page: Path | None
    watchdog: bool = False  # whether the watchdog interrupted the run, not the user


def execute(
    prepared: Prepared,
    run_dir: Path,
    observe: Observe,
    *,
    keep: bool = False,
    page: bool = True,
    tables: bool = True,
) -> Outcome:
    """Runs a prepared run in `run_dir` (must exist and be empty): lab, scenario, teardown, tables and report.
    keep: the lab stays up after its scenario. tables: reduce the records, if the scenario had begun. page:
    write the report then. In virtual time, adds the hashes of the run's files to the manifest. Raises
    KernelError if the lab does not start, RunError or CaptureError if the results cannot be evaluated.
    """
    launch = _launch(prepared, run_dir, scenario=True, keep=keep)
    record_bounds(run_dir, prepared.plan, prepared.time)
    drawing = _drawing(prepared.plan, run_dir)
    until, beside = scenario_over if keep else None, partial(load_reports, page=page) if tables else None

    def start() -> LabHandle:
        handle = prepared.kernel.start(launch)
        drawing.start()  # started only now: the kernel may fork, and a thread could hold a lock then
        return handle

    places = Places(prepared)
    followed = follow(start, places.observing(observe), until, beside)
    tear_down(prepared.state_dir, run_dir, followed, observe, ended=_has_ended(run_dir))
    drawing.join()
    found = close(prepared, run_dir, settle(run_dir, manifest.load(run_dir), followed))
    written = None
    if tables and measured(run_dir, found):
        written = _evaluated(run_dir, found, followed.failure, observe, page=page)
    if prepared.time == "virtual":
        record_hashes(run_dir)
    return outcome(run_dir, manifest.load(run_dir), written, places)


def _has_ended(run_dir: Path) -> bool:
    """Returns whether the manifest states an end. Returns False if the manifest is damaged, so that the lab
    is taken down before the error is raised.
    """
    try:
        return manifest.load(run_dir).state in manifest.ENDED
    except (OSError, ValueError):
        return False


def _launch(prepared: Prepared, run_dir: Path, *, scenario: bool, keep: bool = False) -> Launch:
    """Returns the kernel's settings to start the lab, which writes to the empty directory `run_dir`.
    Copies the topology file to `run_dir`, and unpacks container images unless the kernel is the fake one.
    scenario: the lab runs its scenario. keep: the lab stays up afterwards. Raises TopologyError if an image
    is refused.
    """
    (run_dir / "topology.yaml").write_bytes(prepared.request.file.read_bytes())
    kept, plan = prepared.request.snapshots, prepared.plan
    if prepared.kernel.name != "fake" and any(node.image for node in plan.nodes):
        plan = with_images(plan)
    snapshots = kept.resolve() if kept else None
    return Launch(plan, run_dir.resolve(), prepared.state_dir, prepared.agent, scenario, keep, snapshots)


def _drawing(plan: Plan, run_dir: Path) -> threading.Thread:
    """Returns a thread, not yet started, that draws the topology to `run_dir`/topology.svg; it leaves no file
    if that fails.
    """

    def draw() -> None:
        path = run_dir / "topology.svg"
        try:
            path.write_bytes(graph(plan))
        except (GraphError, OSError):
            path.unlink(missing_ok=True)  # a run does not need the drawing; `vnet graph` reports the error

    return threading.Thread(target=draw)


def bring_up(prepared: Prepared, run_dir: Path, observe: Observe) -> Followed:
    """Starts a lab without its scenario and leaves it running; it is up if `last` of the result is set.
    Otherwise `errors` of the result has at least one text. Takes the lab down by force after a second signal.
    """
    launch = _launch(prepared, run_dir, scenario=False)
    _drawing(prepared.plan, run_dir).start()
    places = Places(prepared)
    followed = follow(partial(prepared.kernel.start, launch), places.observing(observe), scenario_over)
    followed.errors = tuple(map(places.text, followed.errors))
    if followed.killed:
        take_down(prepared.state_dir.name, politely=False)
    if followed.last is None and not followed.errors:
        followed.errors = ("interrupted" if followed.interrupted else last_words(run_dir),)
    return followed


def _evaluated(
    run_dir: Path, ended: Manifest, failure: BaseException | None, observe: Observe, *, page: bool
) -> Path | None:
    """Calls `evaluate` and returns its result; raises `failure` instead if its modules could not be imported.
    If either fails for a run that is not complete, raises RunError with the run's error first, as the likely
    cause.
    """
    try:
        if failure is not None:
            raise failure
        return evaluate(run_dir, observe, page=page)
    except (OSError, CaptureError, ValueError) as error:
        if ended.state == "complete":
            raise
        raise RunError(
            f"{ended.state}: {ended.error}; and its tables cannot be written ({error}): mend "
            f"that, then `vnet report --reduce {shlex.quote(str(run_dir))}`"
        ) from error


def evaluate(run_dir: Path, observe: Observe, *, page: bool) -> Path | None:
    """Reduces a run and, with `page`, writes its report; returns the page's path, None without `page`.

    Raises CaptureError, RunDirectoryError.
    """
    from capture.reduce import reduce_run
    from reports.report import report

    def tell(event: str, **fields: Any) -> None:
        observe({"event": event, **fields})

    tell("phase", phase="reduce")
    reduce_run(run_dir)
    if not page:
        return None
    tell("phase", phase="report", done=0, total=0)
    written = report(run_dir, lambda done, total: tell("phase", phase="report", done=done, total=total))
    tell("end", status=0)
    return written


def scenario_over(event: Event) -> bool:
    """Returns whether the event shows that the lab's scenario, if it has one, is over and that the lab stays
    up and serves requests.
    """
    return event.get("event") == "phase" and event.get("serving") is True


def close(prepared: Prepared, run_dir: Path, ended: Manifest) -> Manifest:
    """Completes the manifest after the lab's end, and seals the run if its scenario had begun; returns
    `ended`.
    """
    if prepared.time == "virtual":
        complete_manifest(run_dir, prepared)
    if measured(run_dir, ended):  # the seal shows changes that happen before the first reduction
        seal.seal(run_dir, records=ended.state != "running")
    return ended


def settle(run_dir: Path, found: Manifest, followed: Followed) -> Manifest:
    """Returns the manifest of a run whose lab has ended or stays up.

    If the lab ended without writing its end state, writes `interrupted` or `failed` there with the reason.
    """
    if found.state in manifest.ENDED or (followed.last is not None and found.state):
        return found
    state = "interrupted" if followed.interrupted else "failed"
    return manifest.ended(run_dir, state, "; ".join(followed.errors) or last_words(run_dir))


def last_words(run_dir: Path) -> str:
    """Returns a sentence on a lab process that ended without an error event, with the last three lines of its
    first log that is not empty.
    """
    for name in ("lab.log", "owner.log", "console.log", "remote.log"):
        log = run_dir / "raw" / name
        if log.exists() and (text := log.read_text(errors="replace").strip()):
            return f"the lab process ended without an error; {log} ends: " + " | ".join(
                text.splitlines()[-3:]
            )
    return f"the lab process ended without an error; {run_dir / 'raw'} holds what it left"


def measured(run_dir: Path, found: Manifest) -> bool:
    """Returns whether the run has begun its scenario and has a plan, so that there are records to reduce."""
    return bool(found.t0_ns) and (run_dir / "plan.json").exists()


def outcome(run_dir: Path, found: Manifest, page: Path | None, places: Places) -> Outcome:
    """Reads the outcome of a run from its manifest, with the warnings that the reduction added."""
    return Outcome(
        run_dir,
        found.state,
        found.suspect,
        places.text(found.error) if found.error else found.error,
        tuple({**one, "text": places.text(str(one.get("text", "")))} for one in found.warnings),
        page,
        found.ended_by == "watchdog",
    )
