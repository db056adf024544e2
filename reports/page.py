"""One self-contained HTML page from a study: no script, no network, every figure inline."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from reports.sections.registry import SECTIONS
from reports.sections.section import Page, environment
from reports.study import Study
from reports.virtual import statement

CSS = Path(__file__).parent / "page.css"


def render(page: Page) -> str:
    """The page's HTML text; figures and tables of its sections are written on the way."""
    parts = [part for section in SECTIONS if (part := section(page)) is not None]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            css=Markup(CSS.read_text(encoding="utf-8")),
            study=page.study,
            subtitle=_subtitle(page.study),
            statement=statement(page.study),
            parts=parts,
        )
    )


def _subtitle(study: Study) -> str:
    runs = len(study.cells)
    text = ", ".join(study.scenarios) + (": " + ", ".join(study.series) if study.series else "")
    return text if study.single else f"{text}; {runs} run{'s' if runs != 1 else ''}"
