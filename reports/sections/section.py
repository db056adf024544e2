"""Defines the page that sections fill, the part that each section returns, and the figures and templates of
both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from contract.verdict import FAILS, HOLDS
from reports.claims.claim import Claim
from reports.claims.verdict import Judgement
from reports.figures.drawing import draw_all, save
from reports.figures.spec import Absent, Drawn, Spec
from reports.judged import of as written
from reports.papers import Paper, paper_of
from reports.spreadsheet import write_parts
from reports.study import Study
from reports.svg import inline
from reports.warnings import Notice, notices

HERE = Path(__file__).parent
CODE = re.compile("`([^`]+)`")
CHIPS = {HOLDS: "good", FAILS: "bad"}


@dataclass(frozen=True)
class Part:
    """A finished section of the page; `entries` are the anchors and titles of its figures for the contents
    list.
    """

    anchor: str
    title: str
    body: Markup
    entries: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure of the page; `svg` is empty if it could not be drawn, for the `reason` given."""

    spec: Spec
    svg: Markup
    reason: str
    files: tuple[str, ...]


@dataclass
class Page:
    """The page that sections fill: its study, the directory for figures and tables, and the figures and
    tables that were written so far.
    """

    study: Study
    folder: Path  # report/
    links: dict[str, str] = field(default_factory=dict)  # name of a cell -> the relative path of its own page
    tables: dict[str, str] = field(default_factory=dict)  # file -> title, for each table written so far
    # keys of figures that `first` has drawn; `figures` skips these
    placed: set[str] = field(default_factory=set)
    _written: set[str] = field(default_factory=set)  # files of tables, also those of figures

    @cached_property
    def notices(self) -> list[Notice]:
        return notices(self.study)

    @property
    def suspect(self) -> bool:
        """Whether a manifest or a broken seal makes a run suspect; the option --strict uses the same rule."""
        return any(n.level == "suspect" for n in self.notices) or any(
            cell.run.manifest.suspect for cell in self.study.cells
        )

    @cached_property
    def paper(self) -> Paper | None:
        """The paper that the study's runs name as their reference; None if they name none, several or an
        unknown one.
        """
        return paper_of(self.study)

    @cached_property
    def judged(self) -> dict[str, tuple[Claim, Judgement]]:
        """The paper's claims by key with the verdicts of verdicts.json, or judged now if the file lacks one;
        empty without a paper.
        """
        if self.paper is None:
            return {}
        known = {one.name: one for one in written(self.study.root, "claim") or ()}
        claims = {claim.key: (claim, known.get(claim.title)) for claim in self.paper.claims().claims}
        # An earlier version judged the claims, or no program did.
        if any(one is None for _, one in claims.values()):
            return self.paper.judged(self.study)
        return {key: (c, Judgement(one.verdict, one.reason)) for key, (c, one) in claims.items() if one}

    def first(self, specs: Iterable[Spec]) -> Figure | None:
        """Draws, writes and returns the first of these figures that can be drawn; None if there is none.
        Later calls of `figures` leave it out.
        """
        for spec in specs:
            for figure in self.figures([spec]):
                self.placed.add(spec.key)
                return figure
        return None

    def figures(self, specs: Iterable[Spec], absent: bool = False) -> tuple[Figure, ...]:
        """Draws the figures, writes them as files and returns them, without those that `first` returned.
        Figures that cannot be drawn are left out; with `absent`, they are returned with the reason.
        """
        left = [spec for spec in specs if spec.key not in self.placed]
        found = [self._figure(figure) for figure in draw_all(left, self.study)]
        return tuple(f for f in found if f.svg or absent)

    def _figure(self, figure: Drawn | Absent) -> Figure:
        spec = figure.spec
        if isinstance(figure, Absent):
            return Figure(spec, Markup(), figure.reason, ())
        files = (f"figures/{spec.key}.svg", f"figures/{spec.key}.vl.json", f"tables/{spec.key}.csv")
        self._claim(files[-1])
        save(figure, self.folder)
        return Figure(spec, Markup(inline(figure.svg, spec.key, spec.title)), "", files)

    def write(self, key: str, title: str, frame: pl.DataFrame | None) -> str:
        """Writes tables/KEY.csv and lists it among the page's tables; returns its path, or "" without rows.
        ValueError if the page already has a table of this name.
        """
        return "" if frame is None or frame.is_empty() else self.write_parts(key, title, [frame])

    def write_parts(self, key: str, title: str, parts: Iterable[pl.DataFrame]) -> str:
        """Writes tables/KEY.csv from parts with the same columns, lists it among the page's tables and
        returns its path. ValueError if the page already has a table of this name.
        """
        file = f"tables/{key}.csv"
        self._claim(file)
        (self.folder / "tables").mkdir(parents=True, exist_ok=True)
        write_parts(parts, self.folder / file)
        self.tables[file] = title
        return file

    def _claim(self, file: str) -> None:
        """Notes that the page writes a table of this name; ValueError if it already did, because the first
        table would be lost.
        """
        if file in self._written:
            raise ValueError(f"{file}: the page has two tables of this name; rename one of them")
        self._written.add(file)

    def part(self, anchor: str, title: str, entries: Sequence[tuple[str, str]] = (), **context: Any) -> Part:
        """Renders the template ANCHOR.html.j2 of this directory with the context and returns it as a part of
        the page.
        """
        template = environment().get_template(f"{anchor}.html.j2")
        body = template.render(page=self, study=self.study, **context)
        return Part(anchor, title, Markup(body), tuple(entries))


Section = Callable[[Page], Part | None]


@cache
def environment() -> Environment:
    """Returns the template environment of page and sections, which escapes every value from a run and refuses
    undefined names; cached.
    """
    made = Environment(
        loader=FileSystemLoader([HERE, HERE.parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["chip"] = lambda word: CHIPS.get(word, "open")
    made.filters["words"] = words
    return made


def words(text: str) -> Markup:
    """Returns the text of a warning as escaped HTML; text between backticks becomes code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))


def entries(figures: Sequence[Figure]) -> list[tuple[str, str]]:
    """Returns anchors and titles of figures for the contents list; a title ends at its first ". "."""
    return [(f.spec.key, f.spec.title.split(". ")[0]) for f in figures]
