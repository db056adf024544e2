"""Tests the report of a run with hostile texts in a real browser: it runs no script, opens no dialog and
loads nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import WHY, here
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "reports")]

from hostile_run import HOSTILE, make_hostile  # noqa: E402
from synthetic import write_run  # noqa: E402
from synthetic_shape import Shape  # noqa: E402

from reports.report import report  # noqa: E402

pytestmark = pytest.mark.skipif(not here(), reason=WHY)
CUT = """() => [...document.querySelectorAll('.figure svg')].filter(drawing =>
  drawing.getBoundingClientRect().right > drawing.closest('.figure').getBoundingClientRect().right
).map(drawing => drawing.closest('.figure').id)"""
# Cells of text, and the first cell of each row: all begin at the left.
RIGHT = """() => [...document.querySelectorAll('.text, tbody th:first-child, tbody td:first-child')].filter(
  cell => !['left', 'start'].includes(getComputedStyle(cell).textAlign)).map(cell => cell.innerText)"""
ACTIVE = "[...document.querySelectorAll('*')].some(e => [...e.attributes].some(a => a.name.startsWith('on')))"


def test_a_hostile_run_is_text_in_the_report(tmp_path: Path, chromium: Callable[..., Page]) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    make_hostile(run)
    page, troubles, asked = chromium(), list[str](), list[str]()
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    place = report(run).as_uri()
    page.goto(place)
    assert HOSTILE in page.inner_text("body"), "the names are shown as they are"
    assert page.evaluate("[...document.images].every(i => i.naturalWidth > 0)"), "no image of a name"
    assert page.evaluate("document.querySelectorAll('script').length") == 0
    assert not page.evaluate(ACTIVE)
    assert troubles == [] and {url for url in asked if not url.startswith("data:")} == {place}


@pytest.mark.parametrize("width", [390, 1400])
def test_figures_are_whole_and_text_begins_at_the_left(
    tmp_path: Path, chromium: Callable[..., Page], width: int
) -> None:
    page = chromium(viewport={"width": width, "height": 800})
    page.goto(report(write_run(tmp_path / "run", Shape(hold_s=20))).as_uri())
    assert page.locator(".figure svg").count() > 3 and page.locator("td.text").count() > 3
    assert page.evaluate("document.documentElement.scrollWidth") == width, "the page scrolls sideways"
    assert page.evaluate(CUT) == []
    assert page.evaluate(RIGHT) == []
