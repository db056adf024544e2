"""Writes a comparison as one self-contained HTML file in the style of the report pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from contract import regular
from reports.compare import trials
from reports.compare.comparison import Comparison
from reports.compare.condition import Outcome
from reports.compare.errors import CompareError
from reports.compare.forest import forest
from reports.compare.messages import Partners, partners
from reports.compare.settings import settings
from reports.compare.table import table
from reports.compare.words import first_line, method
from reports.figures import latency
from reports.figures.drawing import draw_all
from reports.figures.spec import Absent
from reports.page import CSS
from reports.sections.section import Figure, environment
from reports.study import Study
from reports.svg import inline

MARK = b"vNET comparison</title>"
MOST_ROWS = 200
MOST_FACETS = 4  # conditions whose distributions are drawn, those with the largest differences
MOST_PARTNERS = 20


def write(one: Comparison, path: Path, outcomes: Sequence[Outcome] = ()) -> Path:
    """Writes the page to `path`, makes the directory and returns the path. An earlier comparison page is
    replaced; CompareError if another file is there.
    """
    insist_on_page(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    regular.write(path, render(one, outcomes))
    return path


def insist_on_page(path: Path) -> None:
    """Raises CompareError if the path has a file that is no page of a comparison, so that nothing else is
    overwritten.
    """
    if path.exists() and MARK not in path.read_bytes():
        raise CompareError(f"{path}: is there, and no page of a comparison; name another --out")


def render(one: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    """Returns the page as HTML text."""
    study = merged(one)
    return (
        environment()
        .get_template("compare/page.html.j2")
        .render(
            css=Markup(CSS.read_text(encoding="utf-8")),
            comparison=one,
            title=" and ".join(Path(side.name).name for side in one.sides[:3]),
            answer=first_line(one),
            method=method(one),
            table=table(one.rows).cut(MOST_ROWS),
            settings=settings(one.sides),
            trials=trials.shown(one),
            outcomes=outcomes,
            partners=_partners(one),
            most_partners=MOST_PARTNERS,
            figures=_figures(one, study),
        )
    )


def merged(one: Comparison) -> Study:
    """Returns a study of all sides' runs: a series for each side, a scenario for each condition. It leaves
    out baselines, and all but the first MOST_FACETS conditions in the order of the rows.
    """
    largest = dict.fromkeys(row.condition for row in one.rows)
    chosen = list(largest)[:MOST_FACETS]
    cells = {}
    for found in one.matches:
        if found.name in chosen:
            for letter, samples in zip(found.letters, (found.a, found.b), strict=True):
                for sample in samples:
                    if sample.cell is not None:
                        place = (letter, found.name, sample.name)
                        cells[place] = replace(sample.cell, scenario=found.name, series=_series(one, letter))
    return Study("comparison", Path(), tuple(cells.values()), False)


def _series(one: Comparison, letter: str) -> str:
    return next(f"{letter}: {Path(side.name).name}" for side in one.sides if side.letter == letter)


def _figures(one: Comparison, study: Study) -> list[Figure]:
    specs = [forest(one.rows)]
    if study.cells:
        specs += [
            replace(spec, caption=f"{spec.caption} All compared runs of a side together.")
            for spec in (latency.ECDF, latency.CCDF, latency.TRIPS)
        ]
    return [
        Figure(drawn.spec, Markup(inline(drawn.svg, drawn.spec.key, drawn.spec.title)), "", ())
        for drawn in draw_all(specs, study)
        if not isinstance(drawn, Absent)
    ]


def _partners(one: Comparison) -> list[tuple[str, Partners]]:
    """Returns the condition's name and the compared messages for each pair in virtual time."""
    return [(found.name, pair) for found in one.matches for pair in partners(found)]
