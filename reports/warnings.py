"""What to look at before trusting the numbers: it stands first on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from reports.cell import Cell
from reports.figures.proof import proofs
from reports.metrics.delivery import delivery
from reports.metrics.metric import Of, find
from reports.metrics.trials import label, line_rates, one_clock
from reports.papers import unknown
from reports.study import Study

Level = Literal["suspect", "warning", "missing"]
BUSY, STEAL = 90.0, 2.0  # % of the machine, means of the hold
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
    if m.get("suspect") and not failed.height and not any(w.get("suspect") for w in m.get("warnings") or []):
        yield Notice("suspect", place, "the run marked itself suspect and does not say why")
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
    yield from _captures(cell, place)
    yield from _machine(cell, place)
    yield from _clock(cell, place)
    yield from _accounting(cell, place)
    yield from _tester(cell, place)
    for v in delivery(cell.run):
        if v.holds is False:
            yield Notice("warning", place, f"{v.class_}, {v.promise}: the promise did not hold: {v.reason}")


def _machine(cell: Cell, place: str) -> Iterator[Notice]:
    """An overloaded or shared machine spoils CPU and latency, whatever else went well."""
    for where, kernel in (("lab", "the lab's kernel"), ("outer", "the machine outside")):
        busy, steal = (find(cell.metrics, name, Of(machine=where)) for name in ("host_busy", "host_steal"))
        if busy and busy.value > BUSY and not cell.run.of_trials:  # a generator takes what there is
            text = f"{kernel} was {busy.value:.0f} % busy in the hold: it shows in latency and CPU"
            yield Notice("suspect", place, text, "repeat it on an idle machine, or with less load")
        if steal and steal.value > STEAL:
            text = f"{steal.value:.1f} % of the time of {kernel} was stolen by its hypervisor"
            yield Notice("suspect", place, text, "repeat it on a machine of its own")
    core = find(cell.metrics, "core_busy", Of(machine="model"))
    if core and core.value > BUSY and not cell.run.of_trials:
        text = f"the modelled core was {core.value:.0f} % busy in the hold: nodes waited for it"
        yield Notice("warning", place, text, "lower the load, or VNET_SYSCALL_COST")


def _clock(cell: Cell, place: str) -> Iterator[Notice]:
    """Nothing arrives before it is scheduled, so a latency below zero is an error of the clock."""
    table = cell.run.table("messages")
    early = 0 if table is None else table.filter(pl.col("latency_ns") < 0).height
    if early:
        subject = "1 message" if early == 1 else f"{early} messages"
        text = f"{subject} arrived before being scheduled: the lab's clock or the records are wrong"
        yield Notice("suspect", place, text, "latencies of this run are off by an unknown amount")


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


def _captures(cell: Cell, place: str) -> Iterator[Notice]:
    for name, counts in (cell.run.manifest.get("captures") or {}).items():
        dropped = sum(int(counts.get(k) or 0) for k in ("dropped_kernel", "dropped_interface"))
        if dropped:
            text = (
                f"capture {name}: {dropped:,} packets were dropped by the kernel and are in no packet figure"
            )
            yield Notice("warning", place, text, "a shorter snap length or a narrower filter")
