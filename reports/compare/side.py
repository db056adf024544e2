"""Defines the sides of a comparison: each is a run, a campaign or a baseline, as a list of samples."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from contract import findings
from contract.plan import Plan
from reports import provenance
from reports.cell import Cell
from reports.compare.errors import CompareError
from reports.compare.figure import Key, keyed
from reports.metrics.metric import Metric
from reports.study import Study

OWN = ("seed", "lab", "state", "start of virtual machines")  # facts that are no settings


@dataclass(frozen=True)
class Sample:
    """One run of a side. `schedule` is a hash of what its flows send and when, `facts` has its settings and
    versions. `cell` is None for a run that a baseline describes.
    """

    name: str
    levels: dict[str, str]
    seed: str
    schedule: str
    facts: dict[str, str]
    metrics: dict[Key, Metric]
    suspect: bool = False
    virtual: bool = False
    cell: Cell | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its letter (A, B, ...), its name (the path as it was named), its samples, and
    sentences about missing data (`notes`).
    """

    letter: str
    name: str
    samples: tuple[Sample, ...]
    notes: tuple[str, ...] = ()


def side_of(letter: str, name: str, study: Study) -> Side:
    """Returns the side with all runs of a study; CompareError if it has none."""
    if not study.cells:
        raise CompareError(f"{name}: no run is complete; `vnet campaign run` continues a campaign")
    return Side(letter, name, tuple(map(sample, study.cells)), study.missing)


def sample(cell: Cell) -> Sample:
    """Returns the sample of one cell; the levels are those of its campaign, its parameters and its
    topology.
    """
    run = cell.run
    known = dict(run.manifest.parameters or run.plan.parameters)
    facts = {name: value for name, value in provenance.facts(run) if name not in OWN}
    if cell.machine:
        facts["machine of the campaign"] = cell.machine
    return Sample(
        cell.name or run.path.name,
        {name: str(level) for name, level in {"topology": run.lab, **known, **cell.levels}.items()},
        str(run.plan.seed if run.manifest.seed is None else run.manifest.seed),
        schedule(run.plan) if run.planned else "",
        facts,
        keyed(cell.metrics),
        bool(findings.reasons(run.manifest)),
        run.virtual,
        cell,
    )


def schedule(plan: Plan) -> str:
    """Returns a hash of what the flows of a plan send and when; plans that send the same at the same times
    have the same hash.
    """
    return digest([(f.name, f.pattern, f.payload, f.schedule, f.start_ns, f.stop_ns) for f in plan.flows])


def digest(value: Any) -> str:
    """Returns a hash of the value's `repr`, shortened to 16 hexadecimal digits."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def letters(count: int) -> list[str]:
    """Returns the letters of that many sides, from A; CompareError if there are more than 26."""
    if count > 26:
        raise CompareError(f"{count} sides: at most 26 can be compared at once; leave some out")
    return [chr(ord("A") + place) for place in range(count)]
