"""Makes the page's section on where the time of the slowest message of each class went."""

from __future__ import annotations

from dataclasses import dataclass

from capture.errors import CaptureError
from capture.why.answer import Answer, Run
from capture.why.select import slowest
from reports import rundir
from reports.metrics.messages import held_messages
from reports.sections.section import Page, Part

MOST_CLASSES = 10
MOST_BYTES = 20_000_000  # largest size of the captures that are read, which takes some 2 s
WIDTH = 1000  # width of a bar that stands for the whole time


@dataclass(frozen=True)
class Bar:
    """A row of a waterfall: begin and width in thousandths of the message's time, and the part's name."""

    what: str
    where: str
    time: str
    share: str
    begin: float
    width: float


@dataclass(frozen=True)
class Waterfall:
    """The bars of a message."""

    traffic_class: str
    title: str
    notes: tuple[str, ...]
    bars: tuple[Bar, ...]


def section(page: Page) -> Part | None:
    """Returns the section of the page; None for several runs, without messages that arrived in the hold, or
    without a kept capture.
    """
    run = page.study.cells[0].run if page.study.single else None
    kept = _kept_bytes(run) if run else 0
    held = held_messages(run) if run and kept else None
    if run is None or held is None:
        return None
    if kept > MOST_BYTES:
        reason = f"the captures have {kept / 1e6:,.0f} MB, which takes too long for a page"
        return page.part("why", "Parts of the latency", waterfalls=(), reason=reason)
    try:
        asked = Run(run.path)
        wanted = held.select("flow", "seq", "receiver")
        rows = slowest(asked.messages.join(wanted, on=wanted.columns, how="semi", nulls_equal=True))
        found = tuple(_waterfall(one) for one in asked.answers(rows.head(MOST_CLASSES), behind=True))
    except CaptureError as error:
        return page.part("why", "Parts of the latency", waterfalls=(), reason=str(error))
    if not found:
        return None
    return page.part("why", "Parts of the latency", waterfalls=found, reason="")


def _kept_bytes(run: rundir.Run) -> int:
    """Returns the total size of the kept captures."""
    files = (run.path / "pcap" / f"{one.name}.pcap" for one in run.plan.captures)
    return sum(file.stat().st_size for file in files if file.is_file())


def _waterfall(answer: Answer) -> Waterfall:
    total = answer.latency_ns or 1
    title = f"{answer.message} to {answer.receiver}: {total / 1e6:,.4g} ms"
    return Waterfall(answer.traffic_class, title, answer.notes, tuple(_bars(answer, total)))


def _bars(answer: Answer, total: int) -> list[Bar]:
    return [
        Bar(
            what=part.what,
            where=part.where + (f", behind {', '.join(list(part.behind)[:3])}" if part.behind else ""),
            time=f"{part.length_ns / 1e6:,.3f} ms",
            share=f"{part.length_ns / total:.1%}",
            begin=WIDTH * (part.begin_ns - answer.scheduled_ns) / total,
            width=max(WIDTH * part.length_ns / total, 1),
        )
        for part in answer.parts
    ]
