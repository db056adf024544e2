"""Collects the notices at the top of the page: reasons not to trust the numbers, and missing data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reports.cell import Cell
from reports.metrics.bounds import bounded
from reports.metrics.hosts import Effect, apart
from reports.metrics.programs import REMEDY, unread
from reports.papers import unknown
from reports.study import Study

Level = Literal["suspect", "warning", "note", "missing"]
SIDE_BY_SIDE = "see the section Comparison of the machines; compare runs of one machine, or of equal machines"
MOST_NAMED = 3  # runs named in one notice
# largest number of sentences of one kind, because a campaign's cells often lack the same data
MOST_MISSING = 12


@dataclass(frozen=True)
class Notice:
    """One sentence about a run (`place`) or the study, and its remedy, which can be empty."""

    level: Level
    place: str
    text: str
    remedy: str = ""


def notices(study: Study) -> list[Notice]:
    """Returns all notices of a study: those that make a run suspect first, then warnings, notes, and at most
    MOST_MISSING sentences about missing data and the number of the others.
    """
    found: list[Notice] = []
    for cell in study.cells:
        found += _of_cell(cell, "" if study.single else cell.name)
    found += [Notice("warning", "", text) for text in unknown(study)]
    found += _of_machines(study)
    for line in study.failed:
        text = f"the cell ended as {line.get('state', 'unknown')!r} and is in no figure"
        remedy = "run the campaign again; it resumes"
        found.append(Notice("warning", str(line.get("cell", "?")), text, remedy))
    found += [Notice("missing", "", text) for text in study.missing[:MOST_MISSING]]
    if len(study.missing) > MOST_MISSING:
        found.append(Notice("missing", "", f"and {len(study.missing) - MOST_MISSING} more of this kind"))
    order = {"suspect": 0, "warning": 1, "note": 2, "missing": 3}
    return sorted(_joined(found), key=lambda n: order[n.level])


def _joined(found: list[Notice]) -> list[Notice]:
    """Returns the notices with those of the same level, text and remedy joined into one, with the names of
    the runs, or their number if there are more than MOST_NAMED.
    """
    places: dict[tuple[Level, str, str], list[str]] = {}
    for n in found:
        places.setdefault((n.level, n.text, n.remedy), []).append(n.place)
    return [
        Notice(level, ", ".join(where) if len(where) <= MOST_NAMED else f"{len(where)} runs", text, remedy)
        for (level, text, remedy), where in places.items()
    ]


def _of_machines(study: Study) -> Iterator[Notice]:
    """Yields a notice if figures depend on the machine of the run, or else if runs of several machines have
    no condition that ran on two of them.
    """
    differing = [effect for effect in study.hosts if effect.significant]
    if differing:
        text = f"{len(differing)} of {len(study.hosts)} figures depend on the machine of the run"
        yield Notice("warning", "", f"{text}: {_said(differing[0])}", SIDE_BY_SIDE)
    elif apart(study.cells):
        text = (
            "no condition ran on two machines, so differences between conditions may come from the machines"
        )
        yield Notice("warning", "", text, "repeat the campaign, or run it on one machine")


def _said(effect: Effect) -> str:
    """Returns a sentence on a figure and the two machines that differ most in it."""
    low, high = min(effect.adds, key=effect.adds.__getitem__), max(effect.adds, key=effect.adds.__getitem__)
    name = f"{effect.name} ({effect.of.words})" if effect.of.words else effect.name
    return f"{name} is larger on {high} than on {low}, by {100 * effect.span:.2g} % of its mean"


def _of_cell(cell: Cell, place: str) -> Iterator[Notice]:
    """Yields the notices of one run: a state other than complete, the findings in manifest and seal, logs
    that lack expected figures and, in virtual time, messages above their bound.
    """
    m = cell.run.manifest
    if m.state not in ("", "complete"):
        why = f": {m.error}" if m.error else ""
        level: Level = "suspect" if m.suspect else "warning"
        text = f"the run's state is {m.state!r}{why}"
        yield Notice(level, place, text, "figures cover only the measured part")
    for warning in m.warnings:
        level = "suspect" if warning.get("suspect") else "note"
        yield Notice(level, place, str(warning.get("text", "")), str(warning.get("remedy") or ""))
    for log in unread(cell.run.path, cell.run.plan):
        yield Notice("warning", place, log.text, REMEDY)
    if cell.run.virtual:  # in real time, the machine's own delays have no bound
        yield from _above_bounds(cell, place)


def _above_bounds(cell: Cell, place: str) -> Iterator[Notice]:
    """Yields a notice for each class with messages that exceeded their bound: either the model of bounds or
    the lab is then wrong.
    """
    for one in bounded(cell.run):
        if one.over and one.worst_ns is not None and one.largest_ns is not None:
            longest, bound = one.largest_ns / 1e3, one.worst_ns / 1e3
            text = (
                f"class {one.traffic_class}: {one.over:,} of {one.count:,} messages took longer than their "
                f"bound ({longest:,.1f} us against {bound:,.1f} us); in doubt: {one.doubt}"
            )
            yield Notice("warning", place, text, "docs/bounds.md lists the assumptions of a bound")
