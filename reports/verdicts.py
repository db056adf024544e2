"""verdicts.json: every verdict on a run or campaign, made once after its reduction.

Terminal, JUnit, exit status and the Python API read it; a directory of an earlier version, which has none, is
judged when it is read, with its old words translated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from capture import doubts, regular, verdict
from capture.verdict import Verdict
from reports.cell import Cell
from reports.papers import paper_of
from reports.sections.validation import promises
from reports.study import Study

NAME = "verdicts.json"
FORMAT = 1
Subject = Literal["proof", "promise", "check", "claim"]


@dataclass(frozen=True)
class Judged:
    """One verdict: of what, how it came out, and why."""

    of: Subject
    name: str
    verdict: Verdict
    reason: str = ""


def of_cell(cell: Cell, promised: Iterable[dict[str, Any]]) -> Iterator[Judged]:
    """Verdicts on a run by itself; `promised`: rows of `promises` that are its own."""
    for one in cell.run.proof:
        name = f"{one['link']} {one['direction']} {one['quantity']}"
        yield Judged("proof", name, verdict.word(one["verdict"]), str(one.get("reason") or ""))
    for row in promised:
        reason = ": ".join(part for part in (row["rule"], row["reason"]) if part)
        yield Judged("promise", f"{row['class']}: {row['promise']}", verdict.word(row["verdict"]), reason)
    checks: list[dict[str, Any]] = cell.run.manifest.get("checks") or []
    for check in checks:
        yield Judged(
            "check", str(check.get("name")), verdict.word(check.get("verdict")), str(check.get("text", ""))
        )


def of_claims(study: Study) -> Iterator[Judged]:
    """Verdicts on the claims of the work that the study repeats."""
    paper = paper_of(study)
    for claim, judged in paper.judged(study).values() if paper is not None else ():
        yield Judged("claim", f"{claim.key}: {claim.text}", judged.verdict, judged.reason)


def by_cell(study: Study) -> dict[str, tuple[Judged, ...]]:
    """Verdicts on each run of a study."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in promises(study).to_dicts():
        rows.setdefault(str(row["cell"]), []).append(row)
    return {cell.name: tuple(of_cell(cell, rows.get(cell.name, ()))) for cell in study.cells}


def write(study: Study) -> None:
    """verdicts.json of a run, or of a campaign: then its claims, and what its runs came to in numbers."""
    own = by_cell(study)
    found = [*(own[study.cells[0].name] if study.single else ()), *of_claims(study)]
    suspect = {cell.name: doubts.why(cell.run.manifest) for cell in study.cells}
    data = {
        "format": FORMAT,
        "suspect": {name: why for name, why in suspect.items() if why is not None},
        "counts": counts(found if study.single else [*found, *(one for of in own.values() for one in of)]),
        "verdicts": [asdict(one) for one in found],
    }
    regular.write(study.root / NAME, json.dumps(data, indent=1) + "\n")


def counts(found: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """How many of each subject came out how: {"proof": {"holds": 6}}."""
    counted: dict[str, Counter[str]] = {}
    for one in found:
        counted.setdefault(one.of, Counter())[one.verdict] += 1
    return {of: dict(words) for of, words in counted.items()}


def known(directory: Path) -> dict[str, dict[str, int]]:
    """The counts of a directory that has been judged; empty where it has not, or not readably."""
    try:
        read: dict[str, Any] = json.loads((directory / NAME).read_text(encoding="utf-8"))
        return {str(of): dict(words) for of, words in read["counts"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def untold(directory: Path) -> int:
    """How many verdicts on proofs and promises are `cannot tell`.

    Claims of works need many runs, and a check that could not be made is a note: neither counts.
    """
    judged = known(directory)
    return sum(words.get(verdict.OPEN, 0) for of, words in judged.items() if of in ("proof", "promise"))
