"""Runs trials in virtual time, several side by side, each in a process of its own; keeps their outcomes."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from contract import codec, findings, manifest, verdict
from contract.plan import Plan
from orchestrator.campaign.engines.job import Job
from orchestrator.campaign.engines.resident import Resident
from orchestrator.hunt import features
from orchestrator.hunt.files import content
from orchestrator.hunt.journal import Journal
from orchestrator.hunt.model import Outcome, Trial
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.run.prepare import Request
from orchestrator.topology.loading import parse
from reports import verdicts
from reports.errors import RunDirectoryError
from reports.study import study_of_run

TRIALS = "trials"  # directory of the runs that are under way; empty between rounds


class StoppedError(Exception):
    """Raised when the hunt is stopped while trials run; their outcomes are not recorded."""


@dataclass
class Trials:
    """Runs trials of the file `file` in `directory`, `workers` at a time.

    An outcome is recorded by the content of its file, so that equal trials run once, also after a resume.
    """

    file: Path
    directory: Path
    journal: Journal
    kernel: str = "auto"
    workers: int = 1
    ran: int = 0
    _jobs: list[Job] = field(default_factory=list)
    _stopped: bool = False
    _resident: Resident | None = None
    _lock: Lock = field(default_factory=Lock)

    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        """Returns the outcomes of trials, in their order; runs those that are not recorded. Raises
        StoppedError after `stop`.
        """
        texts = [content(trial) for trial in trials]
        keys = [_key(text) for text in texts]
        todo = {
            key: text for key, text in zip(keys, texts, strict=True) if self.journal.get(key) is None
        }  # fmt: skip
        with ThreadPoolExecutor(self.workers) as pool:
            running = {pool.submit(self._run, key, text): key for key, text in todo.items()}
            try:
                for done in as_completed(running):
                    self.journal.put(running[done], done.result())
            except BaseException:
                self.stop()
                raise
        found = [(trial, self.journal.get(key)) for trial, key in zip(trials, keys, strict=True)]
        return [replace(outcome, number=trial.number) for trial, outcome in found if outcome is not None]

    def valid(self, trial: Trial) -> bool:
        """Returns whether the trial's file can be planned."""
        try:
            self._plan(content(trial))
        except TopologyError:
            return False
        return True

    def keep(self, text: str, run_dir: Path, when: str = "virtual") -> Outcome:
        """Runs a file's text into `run_dir`, even if its outcome is known, and keeps the run's directory."""
        shutil.rmtree(run_dir, ignore_errors=True)
        run_dir.mkdir(parents=True)
        return _with_hash(self._executed(text, run_dir, f"kept-{_key(text)}", when), run_dir)

    def repeats(self, trial: Trial) -> bool | None:
        """Runs a trial a second time, unless that is recorded; returns whether both runs are equal to the
        byte (`equal`).
        """
        (first,) = self.run([trial])
        text = content(trial)
        key = f"{_key(text)}-again"
        second = self.journal.get(key)
        if second is None:
            second = self._run(key, text)
            self.journal.put(key, second)
        return equal(first, second)

    def stop(self) -> None:
        """Ends the running trials, and prevents further ones."""
        self._stopped = True
        for job in list(self._jobs):
            job.signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends the running trials and the resident process that started them."""
        self.stop()
        with self._lock:
            if self._resident is not None:
                self._resident.close()
                self._resident = None

    def _started(self, told: dict[str, Any], run_dir: Path) -> Job:
        """Starts a trial's process. The first call starts the resident process that forks it. Only one call
        runs at a time, because each fork has one answer.
        """
        with self._lock:
            if self._resident is None:
                self._resident = Resident()
            return Job(told, run_dir, self._resident)

    def _run(self, key: str, text: str) -> Outcome:
        run_dir = self.directory / TRIALS / key
        shutil.rmtree(run_dir, ignore_errors=True)
        run_dir.mkdir(parents=True)
        try:
            return _with_hash(self._executed(text, run_dir, key, "virtual"), run_dir)
        finally:
            shutil.rmtree(run_dir, ignore_errors=True)

    def _executed(self, text: str, run_dir: Path, key: str, when: str) -> Outcome:
        began = time.monotonic()
        (run_dir / "topology.yaml").write_text(text)
        try:
            plan = self._plan(text)
        except TopologyError as wrong:
            return Outcome(0, "aborted", error=str(wrong))
        if self._stopped:
            raise StoppedError
        state, error = self._job(plan, run_dir, key, when)
        if self._stopped or state == "interrupted":
            raise StoppedError
        self.ran += 1
        wall_s = round(time.monotonic() - began, 2)
        if state != "complete":
            return Outcome(0, "aborted", error=error or state, wall_s=wall_s)
        return replace(judged(run_dir), wall_s=wall_s)

    def _plan(self, text: str) -> Plan:
        """Plans a trial; names in the file are looked up beside the hunt's own file."""
        return make_plan(parse(str(self.file), text.encode()))

    def _job(self, plan: Plan, run_dir: Path, key: str, when: str) -> tuple[str, str | None]:
        request = Request(
            run_dir / "topology.yaml", {}, kernel=self.kernel, time=when,
            state=f"{plan.lab}-hunt-{_key(str(self.directory.resolve()))[:6]}-{key}",
        )  # fmt: skip
        told: dict[str, Any] = {
            "request": {**asdict(request), "file": str(request.file), "snapshots": None},
            "plan": codec.to_json(plan),
            "directory": str(self.directory),
            "run_dir": str(run_dir),
        }
        job = self._started(told, run_dir)
        self._jobs.append(job)
        try:
            return job.follow(lambda _event: None, lambda: None)
        finally:
            self._jobs.remove(job)


def equal(one: Outcome, other: Outcome) -> bool | None:
    """Returns whether two runs are equal to the byte. None if the first has no hash, because it did not end
    in order or an earlier version of vNET recorded it.
    """
    return one.hashed == other.hashed if one.hashed else None


def _with_hash(outcome: Outcome, run_dir: Path) -> Outcome:
    """Returns the outcome with the hash of its run's files, which only a run in virtual time records."""
    hashes = {} if outcome.state == "aborted" else manifest.load(run_dir).hashes
    return replace(outcome, hashed=_key(json.dumps(hashes, sort_keys=True))) if hashes else outcome


def judged(run_dir: Path) -> Outcome:
    """Judges the expectations of a reduced run, and describes what it showed. A suspect run never gets the
    state "holds", because its figures cannot be trusted.
    """
    try:
        found = list(verdicts.on_conditions(study_of_run(run_dir)))
        doubt = findings.why(manifest.load(run_dir))
    except RunDirectoryError as error:
        return Outcome(0, "aborted", error=str(error))
    failed = [one for one in found if one.verdict == verdict.FAILS]
    unsure = [one for one in found if one.verdict == verdict.OPEN]
    shown = features.of_run(run_dir)
    if failed:
        return Outcome(0, "fails", tuple(o.name for o in failed), tuple(o.reason for o in failed), shown)
    if unsure:
        return Outcome(0, "cannot tell", why=tuple(o.reason for o in unsure), features=shown)
    if doubt is not None:
        return Outcome(0, "cannot tell", why=(f"the run is suspect: {doubt}",), features=shown)
    return Outcome(0, "holds", features=shown)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
