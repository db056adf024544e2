"""Reads verdicts.json for page, terminal, JUnit file and exit status, which take its verdicts as they stand.

`reports.verdicts` writes the file once, after the reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from contract import rundir, verdict
from contract.verdict import Verdict

Subject = Literal["proof", "guarantee", "check", "claim"]
Counts = dict[str, dict[str, int]]  # {"proof": {"holds": 6}}


@dataclass(frozen=True)
class Judged:
    """One verdict with its subject, its name and its reason."""

    of: Subject
    name: str
    verdict: Verdict
    reason: str = ""


def read(directory: Path) -> tuple[Judged, ...] | None:
    """The verdicts of a run or campaign directory; None if verdicts.json is missing or damaged."""
    try:
        return tuple(
            Judged(
                cast(Subject, str(one["of"])),
                str(one["name"]),
                verdict.word(one["verdict"]),
                str(one.get("reason") or ""),
            )
            for one in rundir.read_verdicts(directory)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def of(directory: Path, subject: Subject) -> list[Judged] | None:
    """The verdicts on one kind of subject, in their order; None if verdicts.json is missing or damaged."""
    found = read(directory)
    return None if found is None else [one for one in found if one.of == subject]


def said(
    directory: Path, subject: Subject, rows: Sequence[dict[str, Any]], reason: str | None = None
) -> list[dict[str, Any]]:
    """The rows of one subject with the recorded verdicts and, in the column `reason`, the recorded reasons.

    If there are no verdicts, or not as many as rows, the rows keep their own verdicts, in today's words.
    """
    found = of(directory, subject)
    if found is None or len(found) != len(rows):
        return [{**row, "verdict": verdict.word(row.get("verdict"))} for row in rows]
    return [
        {**row, "verdict": one.verdict} | ({reason: one.reason} if reason else {})
        for row, one in zip(rows, found, strict=True)
    ]


def counts(found: Iterable[Judged]) -> Counts:
    """The number of verdicts for each subject and verdict word."""
    counted: dict[str, Counter[str]] = {}
    for one in found:
        counted.setdefault(one.of, Counter())[one.verdict] += 1
    return {of: dict(words) for of, words in counted.items()}


def known(directory: Path) -> Counts:
    """The counts in verdicts.json (of a campaign: over all its runs); empty if the file is missing or
    damaged.
    """
    try:
        return rundir.read_counts(directory)
    except (OSError, ValueError):
        return {}


@dataclass(frozen=True)
class Summary:
    """The numbers of a directory's verdicts, and the rows of its proof.json; a campaign has no such rows."""

    counts: Counts
    proof: Sequence[dict[str, Any]] = ()
    unreadable: str = ""  # why proof.json cannot be read


def summary(directory: Path) -> Summary:
    """The verdicts of a run or campaign, as the terminal shows them."""
    counted = known(directory)
    try:
        rows = rundir.read_proof(directory) if counted.get("proof") else []
    except FileNotFoundError:  # the directory of a campaign, whose runs have it
        rows = []
    except (OSError, ValueError) as error:
        return Summary(counted, unreadable=str(error))
    return Summary(counted, said(directory, "proof", rows, "reason"))


def untold(judged: Counts) -> int:
    """The number of verdicts on proofs and guarantees that are `cannot tell`.

    Claims need many runs, and a check that could not be made is only a note, so neither counts.
    """
    return sum(words.get(verdict.OPEN, 0) for of, words in judged.items() if of in ("proof", "guarantee"))
