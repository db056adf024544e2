"""Tests the draw of the reading test: it reads each language whole, and a seed repeats it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import reading


def test_a_seed_repeats_the_draw_and_another_changes_it() -> None:
    assert reading.drawn(1) == reading.drawn(1) != reading.drawn(2)
    texts, pages = reading.drawn(1)
    assert (len(texts), len(pages)) == (reading.TEXTS, reading.PAGES)


# A text that begins so hides its subject. Two build scripts keep their bytes, which name the builds.
HIDDEN = re.compile(r"(\w+: )?(What|Who|Whose|Of|Which|So many)\b(?!:)|(\w+: )?(Where|When|How) .*[^?]$")
BUILDS = ("images/hil/build.sh", "images/kernel/build.sh")
HEADING = re.compile(r"#+ (What|Who|Whose|Of|Which|Where|When|How)\b(?!-)")


def test_no_text_begins_with_a_nominal_clause() -> None:
    found = [
        f"{one.file}:{one.first}: {one.text[:60]}" for one in reading.everything() if HIDDEN.match(one.text)
    ]
    assert [one for one in found if not one.startswith(BUILDS)] == [], "begin with the verb or the noun"


def test_headings_of_pages_are_no_questions() -> None:
    pages = [name for name in reading.tracked() if re.match(r"(docs/.*|README)\.md$", name)]
    lines = [(name, line) for name in pages for line in (reading.ROOT / name).read_text().splitlines()]
    assert [one for one in lines if HEADING.match(one[1])] == []


def test_all_languages_can_be_drawn() -> None:
    ends = {Path(name).suffix or name for name in reading.tracked() if reading.items(name)}
    assert {".py", ".rs", ".sh", "Makefile"} <= ends


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.py", '"""Says one two three four."""\n', [(1, 1, "Says one two three four.")]),
        ("a.py", 'def f():\n    """Says one two three four."""\n', [(2, 2, "f: Says one two three four.")]),
        ("a.py", "x = 1\n# One two three\n# four five six.\n", [(2, 3, "One two three four five six.")]),
        (
            "a.py",
            "x = 1  # one two\n# three four five six seven\n",
            [(1, 1, "x = 1  # one two"), (2, 2, "three four five six seven")],
        ),
        ("a.py", "x = 1  # noqa: E501 because this line is long\n", []),
        ("a.py", 'x = "# no comment at all, but text"\n', []),
        ("a.rs", "//! One two three\n//! four five.\nfn f() {}\n", [(1, 2, "One two three four five.")]),
        ("a.sh", "#!/bin/sh -e -u -x -v\n# One two three four five.\n", [(2, 2, "One two three four five.")]),
        ("a.sh", "# Too short.\n", []),
    ],
)
def test_an_item_is_a_docstring_or_a_block_of_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, found: list[tuple[int, int, str]]
) -> None:
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    (tmp_path / name).write_text(text)
    assert [(item.first, item.last, item.text) for item in reading.items(name)] == found
