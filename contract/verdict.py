"""Defines the verdicts (holds, fails, cannot tell) of proofs, guarantees, checks, expectations and claims
of works. Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Subject = Literal["proof", "guarantee", "check", "claim", "expectation"]
Verdict = Literal["holds", "fails", "cannot tell", "by construction"]
HOLDS: Verdict = "holds"  # the whole interval is inside the required range
FAILS: Verdict = "fails"  # the whole interval is outside the required range
OPEN: Verdict = "cannot tell"  # the interval is partly inside, or a needed value was not measured
GIVEN: Verdict = "by construction"  # verdict of a claim whose content is part of the set-up
ORDER = (FAILS, OPEN, HOLDS, GIVEN)  # the worst first
_EARLIER: dict[str, Verdict] = {"not judged": OPEN, "cannot be judged": OPEN, "does not hold": FAILS}


def word(said: object) -> Verdict:
    """Returns the present word for a verdict in a file; an unknown word becomes `cannot tell`."""
    known: dict[str, Verdict] = {one: one for one in ORDER}
    return (known | _EARLIER).get(said, OPEN) if isinstance(said, str) else OPEN


def of_truth(holds: bool | None) -> Verdict:
    """Returns `holds` for True, `fails` for False and `cannot tell` for None."""
    return OPEN if holds is None else HOLDS if holds else FAILS


@dataclass(frozen=True)
class Judged:
    """One verdict with its subject, its name and its reason."""

    of: Subject
    name: str
    verdict: Verdict
    reason: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Judged:
        """Returns the verdict that a row of verdicts.json has, in the present words; KeyError for a row
        without subject, name or verdict.
        """
        subject = cast(Subject, str(row["of"]))
        return cls(subject, str(row["name"]), word(row["verdict"]), str(row.get("reason") or ""))
