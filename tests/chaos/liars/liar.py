"""Defines a liar (a program that falsifies a run), the change that it makes, and the outcome: caught,
harmless or missed.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from capture.conservation import registry
from capture.conservation.evidence import Evidence
from capture.errors import CaptureError
from capture.reduce import reduce_run
from contract import findings, manifest, rundir, seal
from contract.rundir import read_plan
from liars.figures import Figures, figures, wrong
from orchestrator.plan.bounds.record import record_bounds
from reports.damage import told as told_of
from reports.errors import RunDirectoryError
from reports.metrics.metric import flat
from reports.metrics.summary import summarise
from reports.rundir import read_run
from reports.study import study_of_run
from reports.warnings import notices

Lie = Callable[[Path], None]
When = Literal["writing", "stored", "resealed", "sealed"]
Answer = Literal["caught", "harmless", "missed"]
MADE = ("*.parquet", "packets", "connections", "summary.json", "verdicts.json", "bounds.json", "report")


@dataclass(frozen=True)
class Liar:
    """`lie` changes the files of a run directory.

    when: `writing`: as if the program that writes the file had written it so: no seal says otherwise.
    `stored`: between the run and its first reduction. `sealed`: after that. `resealed`: after that, and it is
    reduced once more.
    """

    name: str
    what: str
    lie: Lie
    when: When = "writing"


@dataclass(frozen=True)
class Outcome:
    """The result of a liar: the figures that are wrong, and the marks that reveal them."""

    wrong: tuple[str, ...]
    marks: tuple[str, ...]

    @property
    def answer(self) -> Answer:
        if self.marks:
            return "caught"
        return "missed" if self.wrong else "harmless"

    @property
    def codes(self) -> list[str]:
        """The names of the marks."""
        return sorted({mark.partition(":")[0].removeprefix("trust-") for mark in self.marks})


class Truth:
    """A run without falsification, with which the others are compared."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir

    @cached_property
    def figures(self) -> Figures:
        return figures(self.run_dir)

    @cached_property
    def marks(self) -> set[str]:
        return marks(self.run_dir)


def tried(truth: Truth, liar: Liar, folder: Path) -> Outcome:
    """Returns the run with the lie in it, evaluated as `vnet run` and `vnet report` do. Raises ValueError if
    the lie changes no file.
    """
    copy = folder / truth.run_dir.name
    shutil.copytree(truth.run_dir, copy, copy_function=shutil.copy2)
    try:
        if liar.when in ("writing", "stored"):
            unmake(copy)
        if liar.when == "stored":
            seal.seal(copy)
        before = contents(copy)
        liar.lie(copy)
        if contents(copy) == before:
            raise ValueError(f"{liar.name} changed nothing")
        return outcome(truth, copy, reduced=liar.when != "sealed")
    finally:
        shutil.rmtree(copy)


def unmake(run_dir: Path) -> None:
    """Removes the seal and the results of the reduction, so that the directory is as the lab leaves it."""
    for pattern in (*MADE, seal.NAME):
        for path in run_dir.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    known = {**manifest.read(run_dir), "hashes": {}, "checks": [], "sealed": False}
    manifest.write(run_dir, known)  # type: ignore[arg-type]


def contents(run_dir: Path) -> dict[str, str]:
    """Returns the digest of every file."""
    files = (path for path in run_dir.rglob("*") if path.is_file())
    return {str(p.relative_to(run_dir)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def outcome(truth: Truth, run_dir: Path, *, reduced: bool) -> Outcome:
    """Returns whether the lie was refused, marked, or not noticed; `reduced`: the tables are made first."""
    try:
        evaluate(run_dir, reduced=reduced)
    except (CaptureError, RunDirectoryError) as error:
        return Outcome((), (f"refused: {error}",))
    new = marks(run_dir) - truth.marks
    return Outcome(tuple(wrong(truth.figures, figures(run_dir))), tuple(sorted(new)))


def evaluate(run_dir: Path, *, reduced: bool) -> None:
    """Evaluates the run as `vnet report` does, without drawing the page."""
    with told_of(run_dir):
        if reduced:
            reduce_run(run_dir)
        record_bounds(run_dir, read_plan(run_dir), str(manifest.load(run_dir).time or "real"))
        run = read_run(run_dir)
        rundir.write_summary(run_dir, map(flat, summarise(run)))
        seal.renew(run_dir, ["summary.json"])
        checks = registry.of_summary(Evidence(run.path, run.plan, manifest.load(run_dir)))
        manifest.checked(run_dir, registry.findings(checks, manifest.CHECK), map(asdict, checks))


def marks(run_dir: Path) -> set[str]:
    """Returns all lines at the top of the run's page, with their codes: `trust-records: messages ...`."""
    codes = {str(w["text"]): str(w["code"]) for w in findings.read(run_dir).warnings}
    found = notices(study_of_run(run_dir))
    return {f"{codes.get(one.text, 'page')}: {one.text}" for one in found if one.level != "missing"}
