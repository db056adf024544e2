"""Settles a run whose lab has ended: takes away what it left, completes its manifest, tells its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture import manifest, seal
from orchestrator.kernel.protocol import LabHandle
from orchestrator.lab.state import read_lab, state_root
from orchestrator.run.directories import RunError
from orchestrator.run.follow import Followed
from orchestrator.run.identity import complete_manifest
from orchestrator.run.prepare import Prepared
from orchestrator.run.teardown import TeardownError, take_down

Event = dict[str, Any]
Observe = Callable[[Event], None]
EXIT_S = 30.0  # the longest wait for the process after its last event
ENDED = ("complete", "interrupted", "failed")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `page` is None if there was nothing to report."""

    run_dir: Path
    state: str  # complete, interrupted, failed
    suspect: bool
    error: str | None
    warnings: tuple[Event, ...]
    page: Path | None
    watchdog: bool = False  # interrupted, but nobody had asked for it


def tear_down(
    prepared: Prepared, run_dir: Path, handle: LabHandle, followed: Followed, observe: Observe
) -> None:
    """Waits for the end of a lab that does not stay up, and takes away what it left if it was killed."""
    if followed.killed:
        take_down(prepared.state, politely=False)
    if followed.last is None:
        reap(handle)
        clear(prepared.state, run_dir, observe)


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


def scenario_over(event: Event) -> bool:
    """Whether the event shows that a lab that stays up has finished its scenario."""
    return event.get("event") == "phase" and event.get("serving") is True


def reap(handle: LabHandle) -> int:
    """The exit status of a lab process that has sent its last event."""
    try:
        return handle.wait(EXIT_S)
    except TimeoutError as error:
        raise RunError(f"{error}; `vnet down` ends it") from error


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
            return f"the lab process ended without a word; {log} ends: " + " | ".join(text.splitlines()[-3:])
    return f"the lab process ended without a word; {run_dir / 'raw'} holds what it left"


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
