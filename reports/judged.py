"""Reads and counts the verdicts in verdicts.json for page, terminal, JUnit file and exit status, without
judging again.

`reports.verdicts` writes the file once, after the reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract import rundir, verdict
from contract.proof import Proven
from contract.verdict import Judged, Subject, Verdict

Counts = dict[str, dict[str, int]]  # {"proof": {"holds": 6}}


def read(directory: Path) -> tuple[Judged, ...] | None:
    """Returns the verdicts of a run or campaign directory; None if verdicts.json is missing or damaged."""
    try:
        return tuple(rundir.read_verdicts(directory))
    except (OSError, ValueError):
        return None


def stale(directory: Path) -> bool:
    """Returns whether a campaign's verdicts.json was written before a cell ended; False for a run, and if the
    campaign lacks verdicts.json or cells.jsonl.
    """
    try:
        written = (directory / rundir.VERDICTS).stat().st_mtime_ns
        return written < (directory / "cells.jsonl").stat().st_mtime_ns
    except FileNotFoundError:
        return False


def of(directory: Path, subject: Subject) -> list[Judged] | None:
    """Returns the verdicts on one kind of subject, in their order; None if verdicts.json is missing
    or damaged.
    """
    found = read(directory)
    return None if found is None else [one for one in found if one.of == subject]


def said(
    directory: Path, subject: Subject, rows: Sequence[dict[str, Any]], reason: str | None = None
) -> list[dict[str, Any]]:
    """Returns the rows of one subject with the recorded verdicts and, if `reason` names a column, the
    recorded reasons in it.

    If there are no recorded verdicts, or not as many as rows, the rows keep their own verdicts, in the
    current words.
    """
    found = of(directory, subject)
    if found is None or len(found) != len(rows):
        return [{**row, "verdict": verdict.word(row.get("verdict"))} for row in rows]
    return [
        {**row, "verdict": one.verdict} | ({reason: one.reason} if reason else {})
        for row, one in zip(rows, found, strict=True)
    ]


def proven_said(directory: Path, checks: Sequence[Proven]) -> list[Proven]:
    """Returns the link checks with the recorded verdicts and reasons; as they are if there are no recorded
    verdicts, or not as many as checks.
    """
    found = of(directory, "proof")
    if found is None or len(found) != len(checks):
        return list(checks)
    return [
        replace(check, verdict=one.verdict, reason=one.reason)
        for check, one in zip(checks, found, strict=True)
    ]


def counts(found: Iterable[Judged]) -> Counts:
    """Returns the number of verdicts by subject and verdict word."""
    counted: dict[str, Counter[str]] = {}
    for one in found:
        counted.setdefault(one.of, Counter())[one.verdict] += 1
    return {of: dict(words) for of, words in counted.items()}


def known(directory: Path) -> Counts:
    """Returns the counts in verdicts.json (of a campaign: over all its runs); empty if the file is missing or
    damaged.
    """
    try:
        return rundir.read_counts(directory)
    except (OSError, ValueError):
        return {}


def unmet(judged: Counts) -> Verdict:
    """Returns the worst verdict on the expectations; `holds` without any."""
    words = judged.get("expectation", {})
    return next((word for word in verdict.ORDER if words.get(word)), verdict.HOLDS)


def answer(found: Sequence[Judged]) -> str:
    """Returns the verdicts on the expectations in one sentence, such as "2 of 7 expectations fail, 1 cannot
    be told"; empty without expectations.
    """
    words = Counter(one.verdict for one in found if one.of == "expectation")
    total, failed, open_ = words.total(), words[verdict.FAILS], words[verdict.OPEN]
    if not total:
        return ""
    named = f"{total} expectation{'s' if total > 1 else ''}"
    if not failed and not open_:
        return f"All {named} hold" if total > 1 else "The expectation holds"
    parts = [f"{failed} of {named} fail{'s' if failed == 1 else ''}"] if failed else []
    if open_:
        parts.append(f"{open_}{'' if failed else f' of {named}'} cannot be told")
    return ", ".join(parts)


@dataclass(frozen=True)
class Summary:
    """The numbers of a directory's verdicts, its expectations, and the rows of its proof.json with their
    verdicts. A campaign has no such rows.
    """

    counts: Counts
    proof: Sequence[Proven] = ()
    unreadable: str = ""  # the reason why proof.json cannot be read; empty if it can
    expectations: Sequence[Judged] = ()


def summary(directory: Path) -> Summary:
    """Returns the verdicts of a run or campaign, as the terminal shows them. If proof.json is damaged,
    `unreadable` has the reason.
    """
    counted = known(directory)
    expected = of(directory, "expectation") or ()
    try:
        rows = rundir.read_proof(directory) if counted.get("proof") else []
    except FileNotFoundError:  # a campaign's directory has no such file; its runs have it
        rows = []
    except (OSError, ValueError) as error:
        return Summary(counted, unreadable=str(error), expectations=expected)
    return Summary(counted, proven_said(directory, rows), expectations=expected)


def untold(judged: Counts) -> int:
    """Returns the number of verdicts on proofs and guarantees that are `cannot tell`.

    Claims are not counted, because they need many runs, nor are checks and expectations.
    """
    return sum(words.get(verdict.OPEN, 0) for of, words in judged.items() if of in ("proof", "guarantee"))
