"""Defines the parts of a conservation check (rule, pairs of counts, verdict), and judges pairs by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from contract.manifest import INAPPLICABLE

Word = Literal["holds", "fails", "cannot tell", "does not apply"]
Relation = Literal["equal", "at least", "at most"]
NAMED = 3  # most subjects or reasons that a text names
UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"))  # units of time, each with its size in ns
WRONG = "its figures are off by an unknown amount: repeat the run, and report it as an error of vNET"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check as the manifest stores it: under `checks`, or under `inapplicable` if the check
    does not apply to the run.
    """

    name: str
    verdict: Word
    text: str
    numbers: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of one subject and its independent count.

    tolerance: the largest difference that still counts as equal.
    """

    of: str
    figure: int
    count: int
    unit: str
    tolerance: int = 0

    def agrees(self, relation: Relation) -> bool:
        above = self.figure - self.count
        return (relation == "at most" or above >= -self.tolerance) and (
            relation == "at least" or above <= self.tolerance
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The pairs of counts that a check compared, and the reasons why it left out other subjects.

    absent: the reason why the check does not apply, if the run has no subject for it.
    """

    compared: Sequence[Compared] = ()
    left_out: Sequence[str] = ()  # reasons why subjects were not compared
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in words: the `figure` must be equal to, at least or at most the independent `count`.

    remedy: the consequence of a failure, and the action that the user should take.
    singular: True if `figure` is a noun in the singular, so that sentences have "is" and "equals".
    """

    name: str
    figure: str
    count: str
    remedy: str
    relation: Relation = "equal"
    singular: bool = False


def judge(rule: Rule, found: Found) -> Check:
    """Returns the rule's verdict with a text and numbers: "fails" if a pair of counts disagrees by more than
    its tolerance, "holds" if all pairs agree; without a pair "does not apply" if `found` says why, else
    "cannot tell".

    The text of a failure names up to three pairs, those with the largest differences first.
    """
    wrong = [one for one in found.compared if not one.agrees(rule.relation)]
    numbers = {
        "compared": len(found.compared), "differing": len(wrong), "left_out": len(found.left_out)
    }  # fmt: skip
    if wrong:
        worst = sorted(wrong, key=lambda one: (-abs(one.figure - one.count), one.of))
        numbers |= {"figure": worst[0].figure, "count": worst[0].count, "tolerance": worst[0].tolerance}
        return Check(rule.name, "fails", f"{_rule(rule, must=True)}, but {_listed(worst)}", numbers)
    why = f"; {_reasons(found.left_out)}" if found.left_out else ""
    if not found.compared and found.absent:
        return Check(rule.name, INAPPLICABLE, found.absent, numbers)
    if not found.compared:
        return Check(
            rule.name, "cannot tell", f"could not be made: {why[2:] or 'nothing to compare'}", numbers
        )
    loosest = max(found.compared, key=lambda one: one.tolerance)
    apart = quantity(loosest.tolerance, loosest.unit)
    allowed = f" (a difference of at most {apart} is allowed)" if loosest.tolerance else ""
    return Check(rule.name, "holds", f"{_rule(rule)}: {len(found.compared)} compared{allowed}{why}", numbers)


def _rule(rule: Rule, *, must: bool = False) -> str:
    """Returns the rule as a sentence. must: the sentence has "must be" and "must equal" instead of "are" and
    "equal".
    """
    be = "must be" if must else "is" if rule.singular else "are"
    equal = "must equal" if must else "equals" if rule.singular else "equal"
    words = {"equal": equal, "at least": f"{be} at least", "at most": f"{be} at most"}
    return f"{rule.figure} {words[rule.relation]} {rule.count}"


def _listed(wrong: Sequence[Compared]) -> str:
    named = [
        f"{one.of}: {quantity(one.figure, one.unit)} against {quantity(one.count, one.unit)}{_tolerance(one)}"
        for one in wrong[:NAMED]
    ]
    rest = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    return f"{'; '.join(named)}{rest}"


def quantity(number: int, unit: str) -> str:
    """Returns a number with its unit in words; times (`ns`) in s, ms or us, with all their digits."""
    if unit != "ns" or number == 0:
        return f"{number:,} {unit}".rstrip()
    size, name = next(((size, name) for size, name in UNITS if abs(number) >= size), (1, "ns"))
    whole, part = divmod(abs(number), size)
    digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0") if size > 1 else ""
    return f"{'-' * (number < 0)}{whole:,}{'.' * bool(digits)}{digits} {name}"


def _tolerance(one: Compared) -> str:
    apart = quantity(one.tolerance, one.unit)
    return f" (a difference of at most {apart} is allowed)" if one.tolerance else ""


def _reasons(left_out: Sequence[str]) -> str:
    """Lists the first NAMED different reasons, each with its number if it occurs more than once, and the
    number of other reasons.
    """
    counts = {reason: left_out.count(reason) for reason in dict.fromkeys(left_out)}
    said = [f"{reason} (in {n} cases)" if n > 1 else reason for reason, n in counts.items()]
    rest = f"; and {len(said) - NAMED} more reasons" if len(said) > NAMED else ""
    return f"{'; '.join(said[:NAMED])}{rest}"
