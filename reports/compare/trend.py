"""Shows figures over dates: campaigns or runs of several days, each compared with the first, as one page."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from contract import regular
from contract.rundir import PLAN
from reports.compare.comparison import DIFFERS, MARGIN, Comparison, Finding, Row, compare
from reports.compare.errors import CompareError
from reports.compare.settings import settings
from reports.compare.side import Side
from reports.compare.words import method, sentence
from reports.numbers import plain
from reports.page import CSS
from reports.sections.section import environment

MARK = b"vNET trend</title>"
MOST = 26  # largest number of dates on one page: a comparison has one letter for each
WIDTH, HEIGHT, EDGE = 220.0, 44.0, 4.0  # px, size of the drawing of one line and its margin


@dataclass(frozen=True)
class Point:
    """The value of a figure at one date, with its finding against the first date. Finding None: this is the
    first date, or no value was measured (`value` None).
    """

    value: float | None
    finding: Finding | None = None
    text: str = ""

    @property
    def shown(self) -> str:
        return "-" if self.value is None else plain(self.value)


@dataclass(frozen=True)
class Line:
    """A figure in one condition over all dates."""

    what: str
    unit: str
    points: tuple[Point, ...]

    @property
    def last(self) -> Point:
        return self.points[-1]


@dataclass(frozen=True)
class Trend:
    """The dates (UTC, text) with their sides, the comparison of the sides, and the lines made from it; lines
    whose last date differs come first.
    """

    dates: tuple[str, ...]
    comparison: Comparison
    lines: tuple[Line, ...]
    left_out: int = 0


def date_of(side: Side) -> float:
    """Returns the time (Unix s) at which a side's first run began: the change time of its plan.json, which is
    written once. This is wall-clock time also for runs in virtual time. CompareError for a baseline, which
    has no date.
    """
    plans = [one.cell.run.path / PLAN for one in side.samples if one.cell is not None]
    if not plans:
        raise CompareError(f"{side.name}: is a baseline and has no date; name the campaign or run itself")
    return min(path.stat().st_mtime for path in plans)


def trend(sides: Sequence[Side], margin: float = MARGIN, dated: Callable[[Side], float] = date_of) -> Trend:
    """Orders the sides by their dates and compares each with the first. Of more than 26 sides, only the first
    and the latest 25 are compared. CompareError for fewer than two sides, or if two have no figure in common.
    """
    if len(sides) < 2:
        raise CompareError("trend: one date is no trend; name two or more runs or campaigns")
    ordered = sorted(((dated(side), side) for side in sides), key=lambda one: one[0])
    chosen = ordered if len(ordered) <= MOST else [ordered[0], *ordered[1 - MOST :]]
    named = [replace(side, letter=chr(ord("A") + place)) for place, (_, side) in enumerate(chosen)]
    found = compare(named, margin)
    dates = tuple(_date(at) for at, _ in chosen)
    return Trend(dates, found, _lines(found), len(ordered) - len(chosen))


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _lines(found: Comparison) -> tuple[Line, ...]:
    rows: dict[tuple[str, str], dict[str, Row]] = {}
    for row in found.rows:
        rows.setdefault((row.what, row.unit), {})[row.b] = row
    lines = []
    for (what, unit), by_side in rows.items():
        first = Point(next(iter(by_side.values())).difference.a)
        later = [_point(by_side.get(side.letter)) for side in found.sides[1:]]
        lines.append(Line(what, unit, (first, *later)))
    return tuple(sorted(lines, key=lambda line: line.last.finding != DIFFERS))


def _point(row: Row | None) -> Point:
    return Point(None) if row is None else Point(row.difference.b, row.finding, sentence(row))


def answer(one: Trend) -> str:
    """Returns a sentence that compares the last date with the first."""
    changed = [line for line in one.lines if line.last.finding == DIFFERS]
    what = "; ".join(f"{line.what}: {line.last.text}" for line in changed[:4])
    more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
    told = f"{len(changed)} of {len(one.lines)} figures differ"
    return f"{one.dates[-1]} against {one.dates[0]}: {told}{': ' + what + more if changed else ''}"


def drawing(line: Line) -> str:
    """Returns an SVG of a line's values over the dates, scaled from the least value to the largest; a dot
    marks each date that differs from the first.
    """
    known = [(place, p) for place, p in enumerate(line.points) if p.value is not None]
    values = [float(p.value) for _, p in known if p.value is not None]
    low, high = min(values), max(values)
    step = (WIDTH - 2 * EDGE) / max(1, len(line.points) - 1)

    def at(place: int, value: float) -> tuple[float, float]:
        share = (value - low) / (high - low) if high > low else 0.5
        return EDGE + place * step, HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE)

    spots = [(at(place, value), p) for (place, p), value in zip(known, values, strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for (x, y), _ in spots)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>'
        for (x, y), p in spots if p.finding == DIFFERS
    )  # fmt: skip
    label = f"{plain(low)} to {plain(high)} {line.unit}"
    return (
        f'<svg width="{WIDTH:.0f}" height="{HEIGHT:.0f}" role="img" aria-label="{label}">'
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>{dots}</svg>'
    )


def as_data(one: Trend) -> dict[str, Any]:
    """Returns the trend as plain data for scripts."""
    return {
        "answer": answer(one),
        "dates": [
            {"date": date, "of": side.name, "runs": len(side.samples)}
            for date, side in zip(one.dates, one.comparison.sides, strict=True)
        ],
        "figures": [
            {
                "figure": line.what, "unit": line.unit, "values": [p.value for p in line.points],
                "findings": [p.finding for p in line.points],
            }
            for line in one.lines
        ],
        "notes": list(one.comparison.notes),
    }  # fmt: skip


def write(one: Trend, path: Path) -> Path:
    """Writes the page and returns its path; an earlier trend is replaced. CompareError if another file is
    there.
    """
    if path.exists() and MARK not in path.read_bytes():
        raise CompareError(f"{path}: is there, and no page of a trend; name another --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    page = (
        environment()
        .get_template("compare/trend.html.j2")
        .render(
            css=Markup(CSS.read_text(encoding="utf-8")),
            trend=one,
            answer=answer(one),
            method=method(one.comparison),
            settings=settings(one.comparison.sides),
            drawings=[Markup(drawing(line)) for line in one.lines],
        )
    )
    regular.write(path, page)
    return path
