"""verdicts.json as it was written: page, terminal, JUnit file and exit status read it, and judge nothing.

`reports.verdicts` makes it, once, when a run has been reduced.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from contract import retired, verdict
from contract.verdict import Verdict

NAME = "verdicts.json"
FORMAT = 1
Subject = Literal["proof", "guarantee", "check", "claim"]
Counts = dict[str, dict[str, int]]  # {"proof": {"holds": 6}}


@dataclass(frozen=True)
class Judged:
    """One verdict: of what, how it came out, and why."""

    of: Subject
    name: str
    verdict: Verdict
    reason: str = ""


def read(directory: Path) -> tuple[Judged, ...] | None:
    """The verdicts of a run or campaign; None if there are none yet, or the file is damaged."""
    try:
        listed: list[dict[str, Any]] = _contents(directory)["verdicts"]
        return tuple(
            Judged(
                cast(Subject, str(one["of"])),
                str(one["name"]),
                verdict.word(one["verdict"]),
                str(one.get("reason") or ""),
            )
            for one in retired.judged(listed)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def of(directory: Path, subject: Subject) -> list[Judged] | None:
    """Those on one subject, in their order; None as `read`."""
    found = read(directory)
    return None if found is None else [one for one in found if one.of == subject]


def said(
    directory: Path, subject: Subject, rows: Sequence[dict[str, Any]], reason: str | None = None
) -> list[dict[str, Any]]:
    """The rows that verdicts were made of, each with its verdict, and its reason in the column `reason`.

    Rows of a directory that nobody has judged, or of which there are more or fewer than verdicts, have their
    own, in today's words.
    """
    found = of(directory, subject)
    if found is None or len(found) != len(rows):
        return [{**row, "verdict": verdict.word(row.get("verdict"))} for row in rows]
    return [
        {**row, "verdict": one.verdict} | ({reason: one.reason} if reason else {})
        for row, one in zip(rows, found, strict=True)
    ]


def counts(found: Iterable[Judged]) -> Counts:
    """How many of each subject came out how."""
    counted: dict[str, Counter[str]] = {}
    for one in found:
        counted.setdefault(one.of, Counter())[one.verdict] += 1
    return {of: dict(words) for of, words in counted.items()}


def known(directory: Path) -> Counts:
    """The counts of a directory that has been judged, of a campaign those of all its runs; else empty."""
    try:
        return {
            retired.SUBJECTS.get(str(of), str(of)): dict(words)
            for of, words in _contents(directory)["counts"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def untold(judged: Counts) -> int:
    """How many verdicts on proofs and guarantees are `cannot tell`.

    Claims of works need many runs, and a check that could not be made is a note: neither counts.
    """
    return sum(words.get(verdict.OPEN, 0) for of, words in judged.items() if of in ("proof", "guarantee"))


def _contents(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / NAME).read_text(encoding="utf-8"))
    return found
