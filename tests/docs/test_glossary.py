"""Tests the glossary: at most 60 words, each with one sentence and the standard or tool that it
comes from.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/glossary.md"
MOST = 60
# Words that are decided; every package uses them.
DECIDED = (
    "build, populate",
    "control socket",
    "CPU contention",
    "delivery guarantee",
    "delivery ledger",
    "disturbance",
    "event",
    "findings",
    "heartbeat",
    "holds, fails, cannot tell",
    "kind",
    "module",
    "mounts",
    "multi-host",
    "queue read-back",
    "rate limit",
    "record consistency",
    "requested, measured",
    "root template",
    "sandbox",
    "stopped process",
    "tolerance",
)


def rows() -> list[tuple[str, ...]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in cells if row[0] != "word" and set(row[0]) != {"-"}]


def test_each_word_has_one_sentence_and_a_source() -> None:
    assert [row for row in rows() if len(row) != 3 or not all(row)] == []
    assert [row[1] for row in rows() if not row[1].endswith(".") or ". " in row[1]] == []


def test_each_word_stands_once_and_the_list_is_short() -> None:
    words = [row[0] for row in rows()]
    assert sorted(set(words)) == sorted(words)
    assert len(words) <= MOST


def test_the_decided_words_are_there() -> None:
    assert [word for word in DECIDED if word not in {row[0] for row in rows()}] == []
