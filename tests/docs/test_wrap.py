"""Tests that lines of text in the pages wrap near 100 characters, and that wrapping changes nothing that a
reader sees.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import markdown
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import wrap  # noqa: E402

LONG = " ".join(["word"] * 22)


def html(text: str) -> str:
    made = markdown.markdown(text, extensions=["tables", "sane_lists", "fenced_code"])
    return re.sub(r"\s+", " ", made)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{LONG}\n", 2),
        (f"- {LONG}\n- {LONG}\n", 4),
        (f"1. {LONG}\n   1. {LONG}\n", 4),
        (f"# {LONG}\n", 1),
        (f"| {LONG} |\n", 1),
        (f"```\n{LONG}\n```\n", 3),
        (f"<!-- {LONG}\n{LONG} -->\n", 2),
        (f"{LONG}  \n{LONG}\n", 2),
        (f"{LONG[:92]} - not an item, and so on\n", 2),
        (f"{LONG[:92]} `a b c d e f` and so on\n", 2),
    ],
)
def test_only_text_is_wrapped_and_stays_the_same(text: str, lines: int) -> None:
    after = wrap.wrapped(text)
    assert len(after.splitlines()) == lines
    assert html(after) == html(text) and wrap.wrapped(after) == after


@pytest.mark.parametrize("whole", ["`a b c d e f`", "<!-- figure: name -->"])
def test_code_and_comments_stay_whole(whole: str) -> None:
    assert whole in wrap.wrapped(f"{LONG[:92]} {whole} and so on\n")


PAGES = list(wrap.pages())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_lines_of_a_page_wrap(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert wrap.wrapped(text) == text, "run `make format`"
