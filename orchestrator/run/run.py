"""One run from its lab to its report: what `vnet run`, every cell of a campaign and a repetition go through.

Nothing is printed: `observe` gets what happens, as events of the form of docs/contracts.md; to those of the
lab this module adds the phases `reduce` and `report`, `signal` (Ctrl-C) and `tick`.
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
    """The outcome of a run. `page` is None if there was nothing to report."""

    run_dir: Path
    state: str  # complete, interrupted, failed
    suspect: bool
    error: str | None
    warnings: tuple[Event, ...]
    page: Path | None
    watchdog: bool = False  # interrupted without a request of the user


def execute(
    prepared: Prepared,
    run_dir: Path,
    observe: Observe,
    *,
    keep: bool = False,
    page: bool = True,
    tables: bool = True,
) -> Outcome:
    """Run what was prepared (prepare.py) in `run_dir` (made, empty) to its tables and its report (`page`).

    keep: the lab stays up after its scenario. Raises KernelError where the lab does not even start.
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
    """Make the lab without its scenario and leave it: it is up if `last` of the result is an event."""
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
    """`evaluate`; where the run had failed before, its error comes first, as the likely cause."""
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
    """Reduce a run and write its report; the page's path. Raises CaptureError, RunDirectoryError."""
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
    """Whether the event shows that a lab that stays up has finished its scenario."""
    return event.get("event") == "phase" and event.get("serving") is True


def close(prepared: Prepared, run_dir: Path, followed: Followed) -> manifest.Contents:
    """The manifest, complete, and the run sealed if there is something to reduce."""
    ended = settle(run_dir, followed)
    complete_manifest(run_dir, prepared)
    if measured(run_dir):  # what is changed before the first reduction is seen by it
        seal.seal(run_dir, records=ended.get("state") != "running")
    return ended


def settle(run_dir: Path, followed: Followed) -> manifest.Contents:
    """The manifest after the end; writes the end of a lab that could not do so itself."""
    found = manifest.read(run_dir)
    if found.get("state") in ENDED or (followed.last is not None and found):
        return found
    state = "interrupted" if followed.interrupted else "failed"
    return manifest.ended(run_dir, state, "; ".join(followed.errors) or last_words(run_dir))


def last_words(run_dir: Path) -> str:
    """The end of the log of a lab process that ended without an error event."""
    for name in ("lab.log", "owner.log", "console.log", "remote.log"):
        log = run_dir / "raw" / name
        if log.exists() and (text := log.read_text(errors="replace").strip()):
            return f"the lab process ended without an error; {log} ends: " + " | ".join(
                text.splitlines()[-3:]
            )
    return f"the lab process ended without an error; {run_dir / 'raw'} holds what it left"


def measured(run_dir: Path) -> bool:
    """Whether the scenario had begun, so that there is something to reduce."""
    return bool(manifest.read(run_dir).get("t0_ns")) and (run_dir / "plan.json").exists()


def outcome(run_dir: Path, page: Path | None) -> Outcome:
    """The outcome of a run by its manifest, with the warnings that the reduction added."""
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
