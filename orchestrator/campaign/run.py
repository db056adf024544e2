"""Executes one run from its lab to its report.

`vnet run` and every cell of a campaign go through here. Nothing is printed: what happens is told to
`observe` as events of the form of docs/contracts.md; this module adds the phases `reduce` and `report`,
`signal` (Ctrl-C) and `tick`.
"""

from __future__ import annotations

import importlib
import os
import shlex
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from capture.errors import CaptureError
from contract import manifest, seal
from orchestrator.campaign.follow import Followed, follow
from orchestrator.campaign.prepare import Prepared
from orchestrator.campaign.teardown import TeardownError, take_down
from orchestrator.campaign.virtual import complete_manifest, record_hashes
from orchestrator.kernel.protocol import LabHandle
from orchestrator.lab.state import read_lab, state_root
from orchestrator.plan.bounds.record import record_bounds

Event = dict[str, Any]
Observe = Callable[[Event], None]
EXIT_S = 30.0  # the longest wait for the process after its last event
ENDED = ("complete", "interrupted", "failed")


class RunError(Exception):
    """A run that failed after it had begun; the text says where and why."""


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


def new_run_dir(lab_dir: Path, now: datetime | None = None) -> Path:
    """Make the directory of a new run: `20260131T120000`, with `-2` and so on if that second is taken."""
    stamp = (now or datetime.now()).strftime("%Y%m%dT%H%M%S")
    return make_dir(lab_dir, stamp)


def named_run_dir(out: Path) -> Path:
    """Make the directory that the user names for one run; RunError where it has anything in it."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _insist_it_is_no_snare(out.parent)
        out.mkdir(exist_ok=True)
        taken = any(out.iterdir())
    except OSError as error:
        raise RunError(
            f"--out {out}: results cannot be written there ({error.strerror}); choose another place"
        ) from error
    if taken:
        raise RunError(
            f"--out {out}: is not empty, and --out names the directory of this run alone; name a new one, "
            f"or write --results {out} for runs below it"
        )
    return out


def make_dir(parent: Path, name: str) -> Path:
    """Make `name` below `parent`, or `name-2`, `name-3` ... if it is there already."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _insist_it_is_no_snare(parent)
        for number in range(1, 1000):
            made = parent / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                made.mkdir()
                return made
    except OSError as error:
        raise RunError(
            f"{parent}: results cannot be written there ({error.strerror}); choose another with --results"
        ) from error
    raise RunError(f"{parent / name}: 999 directories of that name are there; remove some")


def _insist_it_is_no_snare(parent: Path) -> None:
    """Raises RunError if `parent` is another user's symbolic link: results would go to its target."""
    owner = parent.lstat().st_uid
    if parent.is_symlink() and owner not in (0, os.geteuid(), int(os.environ.get("SUDO_UID", "0"))):
        raise RunError(
            f"{parent}: is a link to {parent.readlink()} that another user made (uid {owner}): no results "
            "go there; remove it, or choose another place with --results or --out"
        )


def execute(
    prepared: Prepared,
    run_dir: Path,
    observe: Observe,
    *,
    keep: bool = False,
    page: bool = True,
    tables: bool = True,
) -> Outcome:
    """Run what was prepared in `run_dir` (made, empty) to its tables (`tables`) and its report (`page`).

    keep: the lab stays up after its scenario. Raises KernelError where the lab does not even start.
    """
    launch = prepared.launch(run_dir, scenario=True, keep=keep)
    record_bounds(run_dir, prepared.plan, prepared.time)
    drawing = prepared.draw(run_dir)
    loading = Loading(observe)
    told = loading if tables else observe
    handle, followed = follow(lambda: prepared.kernel.start(launch), told, scenario_over if keep else None)
    if followed.killed:
        take_down(prepared.state, politely=False)
    if followed.last is None:
        reap(handle)
        clear(prepared.state, run_dir, observe)
    ended = settle(run_dir, followed)
    drawing.join()
    loading.join()
    complete_manifest(run_dir, prepared)
    if measured(run_dir):  # what is changed before the first reduction is seen by it
        seal.seal(run_dir, records=ended.get("state") != "running")
    written = _evaluated(run_dir, ended, loading, page=page) if tables and measured(run_dir) else None
    record_hashes(run_dir)
    return outcome(run_dir, written)


def clear(lab: str, run_dir: Path, observe: Observe) -> None:
    """Removes the remains of the run's lab if its process was killed; leaves another lab of that name."""
    about = read_lab(state_root() / lab)
    if about.get("run_dir") != str(run_dir.absolute()) or str(about.get("kernel")).startswith("ssh://"):
        return
    if manifest.read(run_dir).get("state") in ENDED:
        return  # it tore itself down, and has said what it could not remove
    try:
        take_down(lab, politely=False)
    except TeardownError as error:
        remedy = f"vnet down {lab}"
        observe({"event": "warning", "code": "teardown", "text": str(error), "remedy": remedy})


class Loading:
    """`observe`; when the load has ended, and the lab collects and tears down, what reduces a run and reports
    on it begins to be loaded: that takes a second of a core, which a scenario would notice.
    """

    def __init__(self, observe: Observe) -> None:
        self._observe = observe
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def __call__(self, event: Event) -> None:
        if event.get("phase") == "collect" and self._thread is None:
            self._thread = threading.Thread(target=self._load)
            self._thread.start()
        self._observe(event)

    def join(self) -> None:
        """Waits for the thread: two threads that import the same modules may each get a half-loaded one."""
        if self._thread is not None:
            self._thread.join()

    def check(self) -> None:
        """Raises the error of loading, since a second import of a half-loaded library raises another one."""
        if self._failure is not None:
            raise self._failure

    def _load(self) -> None:
        try:
            for name in ("capture.reduce", "reports.report"):
                importlib.import_module(name)
        except BaseException as failure:
            self._failure = failure
            return
        # An error here (a panic of a library, too) occurs again where its result is needed: reported there.
        with suppress(BaseException):
            from reports.figures.drawing import wake

            wake()


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


def scenario_over(event: Event) -> bool:
    """Whether the event shows that a lab that stays up has finished its scenario."""
    return event.get("event") == "phase" and event.get("serving") is True


def reap(handle: LabHandle) -> int:
    """The exit status of a lab process that has sent its last event."""
    try:
        return handle.wait(EXIT_S)
    except TimeoutError as error:
        raise RunError(f"{error}; `vnet down` ends it") from error


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


def _reporting(done: int, total: int) -> Event:
    return {"event": "phase", "phase": "report", "done": done, "total": total}


def evaluate(run_dir: Path, observe: Observe, *, page: bool) -> Path | None:
    """Reduce a run and write its report; the page's path. Raises CaptureError, RunDirectoryError."""
    from capture.reduce import reduce_run
    from reports.report import report

    observe({"event": "phase", "phase": "reduce"})
    reduce_run(run_dir)
    if not page:
        return None
    observe(_reporting(0, 0))
    written = report(run_dir, lambda done, total: observe(_reporting(done, total)))
    observe({"event": "end", "status": 0})
    return written
