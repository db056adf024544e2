"""Tests that numbers of published examples in the pages equal those in the examples' tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
sys.path.insert(0, str(EXAMPLES))

import figures  # noqa: E402
import published  # noqa: E402

MARKED = "<!-- figure: mqtt-payload -->{}<!-- end of figure -->"


def test_the_pages_say_what_the_examples_say() -> None:
    found = [str(page.relative_to(figures.ROOT)) for page in figures.differing()]
    assert found == [], "run `make figures`"


def test_a_number_that_differs_is_replaced() -> None:
    ours = MARKED.format(figures.FIGURES["mqtt-payload"]())
    assert figures.inserted("page.md", MARKED.format("53.75 ± 0.52")) == ours
    assert figures.inserted("page.md", ours) == ours


def test_a_figure_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match=r"page\.md: 'none': no such figure; there are claims, "):
        figures.inserted("page.md", "<!-- figure: none --><!-- end of figure -->")


def test_each_figure_stands_in_a_page_and_each_mark_is_closed() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in figures.pages())
    assert {name for _, name, _, _ in figures.MARKED.findall(text)} == set(figures.FIGURES)
    assert text.count("<!-- figure: ") == text.count("<!-- end of figure -->")


@pytest.mark.parametrize(
    ("value", "half", "words"),
    [
        (83.5084, 0.039, "83.51 ± 0.04"),
        (113.887, 0.0045, "113.9"),
        (53.7381, 0.26725, "53.74 ± 0.27"),
        (40.0, 0.0, "40"),
        (0.0, 0.0, "0"),
        (1147.2, 22.4, "1,147 ± 22"),
    ],
)
def test_a_number_has_four_digits_at_most(value: float, half: float, words: str) -> None:
    assert published.in_digits(value, half) == words


PAGE = """<table><caption>Table 1. Late</caption><thead><tr><th>%</th><th>40 s</th><th>paper</th></tr></thead>
<tbody><tr><th>A</th><td>8.9 &plusmn; 0.4</td><td>4</td></tr></tbody></table>
<table><tr><th>the paper says</th><th>verdict</th><th>because</th></tr>
<tr><td>It holds.</td><td><span class="chip">does not hold</span></td><td>no</td></tr></table>"""


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "e/report").mkdir(parents=True)
    (tmp_path / "e/report/index.html").write_text(PAGE)
    monkeypatch.setattr(published, "HERE", tmp_path)
    published._page.cache_clear()
    return "e"


def test_cells_and_verdicts_are_read_from_a_page(example: str) -> None:
    assert published.cell(example, "Table 1.", "A", "40 s") == "8.9 ± 0.4"
    assert published.cell(example, "Table 1.", "A", "40 s", beside=1) == "4"
    assert published.verdicts([example]) == {"fails": 1}
    with pytest.raises(
        SystemExit, match=r"figures: e: 0 tables begin with 'Table 2'; there are 'Table 1\. Late'"
    ):
        published.cell(example, "Table 2", "A", "40 s")
