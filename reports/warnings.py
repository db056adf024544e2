"""What to look at before trusting the numbers: it stands first on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from reports.cell import Cell
from reports.figures.proof import proofs
from reports.metrics.trials import label, line_rates, one_clock
from reports.papers import unknown
from reports.study import Study

Level = Literal["suspect", "warning", "missing"]
MOST_PROOFS = 5  # of one run
MOST_NAMED = 3  # runs named in one notice
PROVEN = ("proof",)  # codes of warnings that repeat what proof.json says
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


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.4g}"


def _of_cell(cell: Cell, place: str) -> Iterator[Notice]:
    m = cell.run.manifest
    if m.get("state") not in (None, "complete"):
        why = f": {m['error']}" if m.get("error") else ""
        yield Notice(
            "suspect",
            place,
            f"the run's state is {m['state']!r}{why}",
            "figures cover only what was measured",
        )
    failed = proofs([cell]).filter(pl.col("verdict") == "fails")
    for warning in m.get("warnings") or []:
        if not (warning.get("code") in PROVEN and failed.height):  # said below, in readable units
            level: Level = "suspect" if warning.get("suspect") else "warning"
            yield Notice(level, place, str(warning.get("text", "")), str(warning.get("remedy") or ""))
    for p in failed.head(MOST_PROOFS).iter_rows(named=True):
        asked, makes, realised = (
            f"{_number(p[name])} {p['unit'] or ''}".strip() for name in ("asked", "expected", "realised")
        )
        wanted = asked if p["expected"] is None or makes == asked else f"{asked}, which makes {makes}"
        text = f"link {p['link']} {p['direction']}: {p['quantity']}: asked {wanted}, realised {realised}"
        yield Notice("suspect", place, text, "the link is not what the topology asked for")
    if failed.height > MOST_PROOFS:
        yield Notice("suspect", place, f"{failed.height - MOST_PROOFS} more proofs of links failed")
    yield from _accounting(cell, place)
    yield from _tester(cell, place)


def _tester(cell: Cell, place: str) -> Iterator[Notice]:
    """A generator in software may be slower than the path: then it is itself what was measured."""
    rates = line_rates(cell.run)
    if any(not one_clock(cell.run, stream) for stream in rates):
        text = "sender and receiver are in two kernels, whose clocks differ: latency is not shown"
        yield Notice("warning", place, text, "for latency take two nodes of one kernel")
    found = [m for m in cell.metrics if m.name == "throughput"]
    slow = [
        label(m.of.stream or "", m.of.frame_bytes or 0, len(rates)) for m in found if "tester" in m.limits
    ]
    if slow:
        text = (
            f"the tester, not the path, limited the throughput of {len(slow)} of {len(found)} frame sizes "
            f"({', '.join(slow)}): the path carries at least what is shown"
        )
        yield Notice("warning", place, text, "an idle machine, more cores, or a line rate within its reach")


def _accounting(cell: Cell, place: str) -> Iterator[Notice]:
    if cell.run.ticked:
        text = (
            "the lab's kernel counts CPU in ticks of 10 ms, and work that a timer wakes falls between them: "
            "CPU of nodes may be far from what is shown, and no claim on it is judged"
        )
        yield Notice("warning", place, text, "make kernel: a lab kernel that counts nanoseconds")
