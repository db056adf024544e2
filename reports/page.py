"""Renders a study as one self-contained HTML page, with every figure inline, without scripts and without
network access.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from reports.sections.registry import SECTIONS
from reports.sections.section import Page, environment
from reports.study import Study

CSS = Path(__file__).parent / "page.css"
MOST_NAMED = 8


Tell = Callable[[int, int], None]  # (sections done, sections in all)


def render(page: Page, tell: Tell) -> str:
    """Returns the page as HTML text; the sections also write their figures and tables as files. `tell`
    receives the number of finished sections and of all.
    """
    parts = []
    for number, section in enumerate(SECTIONS):
        tell(number, len(SECTIONS))
        if (part := section(page)) is not None:
            parts.append(part)
    tell(len(SECTIONS), len(SECTIONS))
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            css=Markup(CSS.read_text(encoding="utf-8")),
            study=page.study,
            subtitle=_subtitle(page.study),
            parts=parts,
        )
    )


def _subtitle(study: Study) -> str:
    runs = len(study.cells)
    text = _named(study.scenarios, "scenarios")
    text += f": {_named(study.series, 'conditions')}" if study.series else ""
    return text if study.single else f"{text}; {runs} run{'s' if runs != 1 else ''}"


def _named(names: list[str], what: str) -> str:
    """Returns all names separated by commas, or only their number if there are more than MOST_NAMED."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} {what}"
