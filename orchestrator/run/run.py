"""Executes one run from its lab to its report, for `vnet run`, `vnet verify` and each cell of a campaign.

Prints nothing, and passes events to `observe` (docs/contracts.md): those of the lab, and its own: the phases
`reduce` and `report`, `signal` (Ctrl-C) and `tick`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture.errors import CaptureError
from contract import manifest, seal
from orchestrator.kernel.ahead import Loading
from orchestrator.plan.bounds.record import record_bounds
from orchestrator.run.directories import RunError
from orchestrator.run.follow import Followed, follow
from orchestrator.run.identity import complete_manifest, record_hashes
from orchestrator.run.prepare import Prepared
from orchestrator.run.teardown import ENDED, reap, take_down, tear_down

Event = dict[str, Any]
Observe = Callable[[Event], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `error` is None without an error, `page` is None if no report was written."""

    run_dir: Path
    state: str  # complete, interrupted, failed
    suspect: bool
    error: str | None
    warnings: tuple[Event, ...]
    page: Path | None
    watchdog: bool = False  # the watchdog interrupted it, not the user


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
    write the report then. Raises KernelError if the lab does not start, RunError or CaptureError if the
    results cannot be evaluated.
    """
    launch = prepared.launch(run_dir, scenario=True, keep=keep)
    record_bounds(run_dir, prepared.plan, prepared.time)
    drawing, loading = prepared.draw(run_dir), Loading(observe)
    watch = loading if tables else observe
    handle, followed = follow(lambda: prepared.kernel.start(launch), watch, scenario_over if keep else None)
    tear_down(prepared.state, run_dir, handle, followed, observe)
    drawing.join()
    loading.join()
    ended = close(prepared, run_dir, followed)
    written = _evaluated(run_dir, ended, loading, page=page) if tables and measured(run_dir) else None
    record_hashes(run_dir)
    return outcome(run_dir, written)


def bring_up(prepared: Prepared, run_dir: Path, observe: Observe) -> Followed:
    """Starts a lab without its scenario and leaves it running; it is up if `last` of the result is set."""
    launch = prepared.launch(run_dir, scenario=False)
    prepared.draw(run_dir)
    handle, followed = follow(lambda: prepared.kernel.start(launch), observe, scenario_over)
    if followed.killed:
        take_down(prepared.state, politely=False)
    if followed.last is None:
        reap(handle)
        if not followed.errors:
            followed.errors = ("interrupted" if followed.interrupted else last_words(run_dir),)
    return followed


def _evaluated(run_dir: Path, ended: manifest.Contents, loading: Loading, *, page: bool) -> Path | None:
    """Calls `evaluate`; returns its result.

    If it fails for a run that is not complete, raises RunError with the run's error first, as the likely
    cause.
    """
    try:
        loading.check()
        return evaluate(run_dir, loading, page=page)
    except (OSError, CaptureError, ValueError) as failure:
        if ended.get("state") == "complete":
            raise
        raise RunError(
            f"{ended.get('state')}: {ended.get('error')}; and its tables cannot be written ({failure}): mend "
            f"that, then `vnet report --reduce {shlex.quote(str(run_dir))}`"
        ) from failure


def evaluate(run_dir: Path, observe: Observe, *, page: bool) -> Path | None:
    """Reduces a run and, with `page`, writes its report; returns the page's path, None without `page`.

    Raises CaptureError, RunDirectoryError.
    """
    from capture.reduce import reduce_run
    from reports.report import report

    def reporting(done: int, total: int) -> Event:
        return {"event": "phase", "phase": "report", "done": done, "total": total}

    observe({"event": "phase", "phase": "reduce"})
    reduce_run(run_dir)
    if not page:
        return None
    observe(reporting(0, 0))
    written = report(run_dir, lambda done, total: observe(reporting(done, total)))
    observe({"event": "end", "status": 0})
    return written


def scenario_over(event: Event) -> bool:
    """Whether the event shows that the lab stays up and serves requests, after its scenario if it has one."""
    return event.get("event") == "phase" and event.get("serving") is True


def close(prepared: Prepared, run_dir: Path, followed: Followed) -> manifest.Contents:
    """Completes and returns the manifest after the lab's end; seals the run if its scenario had begun."""
    ended = settle(run_dir, followed)
    complete_manifest(run_dir, prepared)
    if measured(run_dir):  # the first reduction finds later changes by the seal
        seal.seal(run_dir, records=ended.get("state") != "running")
    return ended


def settle(run_dir: Path, followed: Followed) -> manifest.Contents:
    """Returns the manifest of a run whose lab has ended or stays up.

    If the lab ended without writing its end state, writes `interrupted` or `failed` there with the reason.
    """
    found = manifest.read(run_dir)
    if found.get("state") in ENDED or (followed.last is not None and found):
        return found
    state = "interrupted" if followed.interrupted else "failed"
    return manifest.ended(run_dir, state, "; ".join(followed.errors) or last_words(run_dir))


def last_words(run_dir: Path) -> str:
    """Returns a sentence on a lab process that ended without an error event, with the end of its log."""
    for name in ("lab.log", "owner.log", "console.log", "remote.log"):
        log = run_dir / "raw" / name
        if log.exists() and (text := log.read_text(errors="replace").strip()):
            return f"the lab process ended without an error; {log} ends: " + " | ".join(
                text.splitlines()[-3:]
            )
    return f"the lab process ended without an error; {run_dir / 'raw'} holds what it left"


def measured(run_dir: Path) -> bool:
    """Whether the run has begun its scenario and has a plan, so that there are records to reduce."""
    return bool(manifest.read(run_dir).get("t0_ns")) and (run_dir / "plan.json").exists()


def outcome(run_dir: Path, page: Path | None) -> Outcome:
    """Reads the outcome of a run from its manifest, with the warnings that the reduction added."""
    found = manifest.read(run_dir)
    return Outcome(
        run_dir,
        str(found["state"]),
        bool(found["suspect"]),
        found["error"],
        tuple(found.get("warnings", ())),
        page,
        found.get("ended_by") == "watchdog",
    )
