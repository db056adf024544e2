"""What to look at before trusting the numbers: it stands first on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reports.cell import Cell
from reports.metrics.bounds import bounded
from reports.metrics.hosts import Effect, apart
from reports.papers import unknown
from reports.study import Study

Level = Literal["suspect", "warning", "missing"]
ALTERED = "tables: `vnet report --reduce` makes them anew; plan, manifest and proof only the run itself can"
SIDE_BY_SIDE = (
    "section Machines side by side has them; compare runs of one machine, or of machines of one kind"
)
MOST_NAMED = 3  # runs named in one notice
MOST_MISSING = 12  # sentences of one kind; a campaign's cells often miss the same thing


@dataclass(frozen=True)
class Notice:
    """One sentence, and what to do about it where something can be done."""

    level: Level
    place: str
    text: str
    remedy: str = ""


def notices(study: Study) -> list[Notice]:
    """Everything that speaks against the numbers, gravest first."""
    found: list[Notice] = []
    for cell in study.cells:
        found += _of_cell(cell, "" if study.single else cell.name)
    found += [Notice("warning", "", text) for text in unknown(study)]
    found += _of_machines(study)
    for line in study.failed:
        text = f"the cell ended as {line.get('state', 'unknown')!r} and is not in any figure"
        remedy = "run the campaign again: it resumes"
        found.append(Notice("warning", str(line.get("cell", "?")), text, remedy))
    found += [Notice("missing", "", text) for text in study.missing[:MOST_MISSING]]
    if len(study.missing) > MOST_MISSING:
        found.append(Notice("missing", "", f"and {len(study.missing) - MOST_MISSING} more of that kind"))
    order = {"suspect": 0, "warning": 1, "missing": 2}
    return sorted(_joined(found), key=lambda n: order[n.level])


def _joined(found: list[Notice]) -> list[Notice]:
    """What several runs say alike is said once, with their names or their number."""
    places: dict[tuple[Level, str, str], list[str]] = {}
    for n in found:
        places.setdefault((n.level, n.text, n.remedy), []).append(n.place)
    return [
        Notice(level, ", ".join(where) if len(where) <= MOST_NAMED else f"{len(where)} runs", text, remedy)
        for (level, text, remedy), where in places.items()
    ]


def _of_machines(study: Study) -> Iterator[Notice]:
    """Where figures depend on the machine of the cell, or could and nobody can tell."""
    differing = [effect for effect in study.hosts if effect.significant]
    if differing:
        text = f"{len(differing)} of {len(study.hosts)} figures depend on the machine that a run was on"
        yield Notice("warning", "", f"{text}: {_said(differing[0])}", SIDE_BY_SIDE)
    elif apart(study.cells):
        text = "no condition ran on two machines: what differs between conditions may be the machines"
        yield Notice("warning", "", text, "repeat it, or run it on one machine")


def _said(effect: Effect) -> str:
    """The figure that differs most surely, between the machines furthest apart."""
    low, high = min(effect.adds, key=effect.adds.__getitem__), max(effect.adds, key=effect.adds.__getitem__)
    name = f"{effect.name} ({effect.of.words})" if effect.of.words else effect.name
    return f"{name} is {100 * effect.span:.2g} % of its mean larger on {high} than on {low}"


def _of_cell(cell: Cell, place: str) -> Iterator[Notice]:
    """What the manifest says: the one judgement, which terminal and exit status read too."""
    m = cell.run.manifest
    for name in cell.run.altered:
        if name not in ("summary.json", "verdicts.json"):  # which are made anew
            yield Notice("suspect", place, f"{name} was changed after it had been written", ALTERED)
    if m.get("state") not in (None, "complete"):
        why = f": {m['error']}" if m.get("error") else ""
        level: Level = "suspect" if m.get("suspect") else "warning"
        text = f"the run's state is {m['state']!r}{why}"
        yield Notice(level, place, text, "figures cover only what was measured")
    for warning in m.get("warnings") or []:
        level = "suspect" if warning.get("suspect") else "warning"
        yield Notice(level, place, str(warning.get("text", "")), str(warning.get("remedy") or ""))
    if cell.run.virtual:  # in real time nothing bounds what the machine takes
        yield from _above_bounds(cell, place)


def _above_bounds(cell: Cell, place: str) -> Iterator[Notice]:
    """Messages that took longer than they can: an error of the model of bounds, or of the lab."""
    for one in bounded(cell.run):
        if one.over and one.worst_ns is not None and one.largest_ns is not None:
            longest, bound = one.largest_ns / 1e3, one.worst_ns / 1e3
            text = (
                f"class {one.traffic_class}: {one.over:,} of {one.count:,} messages took longer than their "
                f"bound ({longest:,.1f} us against {bound:,.1f} us); in doubt: {one.doubt}"
            )
            yield Notice("warning", place, text, "docs/bounds.md says what a bound takes for granted")
