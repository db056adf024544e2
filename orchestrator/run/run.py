"""One run from its lab to its report: what `vnet run`, every cell of a campaign and a repetition go through.

Nothing is printed: `observe` gets what happens, as events of the form of docs/contracts.md; to those of the
lab this module adds the phases `reduce` and `report`, `signal` (Ctrl-C) and `tick`.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from capture import manifest
from capture.errors import CaptureError
from orchestrator.kernel.ahead import Loading
from orchestrator.run.directories import RunError
from orchestrator.run.ending import (
    Event,
    Observe,
    Outcome,
    close,
    last_words,
    measured,
    outcome,
    reap,
    scenario_over,
    tear_down,
)  # fmt: skip
from orchestrator.run.follow import Followed, follow
from orchestrator.run.identity import record_hashes
from orchestrator.run.prepare import Prepared
from orchestrator.run.teardown import take_down


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
    drawing, loading = prepared.draw(run_dir), Loading(observe)
    watch = loading if tables else observe
    handle, followed = follow(lambda: prepared.kernel.start(launch), watch, scenario_over if keep else None)
    tear_down(prepared, run_dir, handle, followed, observe)
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
    from orchestrator.plan.bounds.record import record_bounds
    from reports.report import report

    def reporting(done: int, total: int) -> Event:
        return {"event": "phase", "phase": "report", "done": done, "total": total}

    observe({"event": "phase", "phase": "reduce"})
    reduce_run(run_dir)
    record_bounds(run_dir)
    if not page:
        return None
    observe(reporting(0, 0))
    written = report(run_dir, lambda done, total: observe(reporting(done, total)))
    observe({"event": "end", "status": 0})
    return written
