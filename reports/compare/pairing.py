"""Pairs the samples of two sides: the same condition, the same seed and the same schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.compare.errors import CompareError
from reports.compare.figure import is_stepped, judged
from reports.compare.side import Sample, Side
from reports.series import by_number

Condition = tuple[tuple[str, str], ...]  # pairs of factor and level, for the factors that vary within a side
MOST_SEEDS = 6
EQUAL = 1e-8  # relative difference up to which values are equal; a baseline rounds to nine digits


@dataclass(frozen=True)
class Match:
    """The samples of two sides in one condition. `a` and `b` are all of them, `pairs` those with the same
    seed and schedule; `why` has sentences about samples without a partner.
    """

    condition: Condition
    letters: tuple[str, str]
    pairs: tuple[tuple[Sample, Sample], ...]
    a: tuple[Sample, ...]
    b: tuple[Sample, ...]
    why: tuple[str, ...]

    @property
    def name(self) -> str:
        """The condition as text; empty if the sides have only one."""
        return ", ".join(f"{factor} {level}" for factor, level in self.condition)


def matches(a: Side, b: Side) -> tuple[list[Match], list[str]]:
    """Returns the conditions that both sides have, each with its pairs, and sentences about those that only
    one side has.

    CompareError if the sides have none in common.
    """
    factors = varying([a, b])
    of_a, of_b = _by_condition(a, factors), _by_condition(b, factors)
    common = [condition for condition in of_a if condition in of_b]
    lonely = [
        f"only {side.letter} has runs with {_text(condition)}"
        for side, found, other in ((a, of_a, of_b), (b, of_b, of_a))
        for condition in found
        if condition not in other
    ]
    if not common:
        raise CompareError(
            f"{a.name} and {b.name} have no condition in common: {'; '.join(lonely[:4])}; "
            "compare runs whose factors have the same levels"
        )
    common.sort(key=lambda condition: by_number(_text(condition)))
    return [match(condition, of_a[condition], of_b[condition], (a, b)) for condition in common], lonely


def varying(sides: Sequence[Side]) -> list[str]:
    """Returns the factors that have several levels within a side; their levels make the conditions. A factor
    whose level differs only between the sides is left out, because its effect is compared.
    """
    found: dict[str, None] = {}
    for side in sides:
        for name in dict.fromkeys(name for one in side.samples for name in one.levels):
            if len({one.levels.get(name) for one in side.samples}) > 1:
                found[name] = None
    return list(found)


def match(condition: Condition, a: Sequence[Sample], b: Sequence[Sample], sides: tuple[Side, Side]) -> Match:
    """Returns the samples of a condition, paired by seed and schedule: each sample of `a` with the first free
    one of `b`.
    """
    left, alone = list(b), list[Sample]()
    pairs: list[tuple[Sample, Sample]] = []
    for one in a:
        other = next((s for s in left if (s.seed, s.schedule) == (one.seed, one.schedule)), None)
        if other is None:
            alone.append(one)
        else:
            left.remove(other)
            pairs.append((one, other))
    why = _why(alone, left, sides) if alone or left else []
    letters = (sides[0].letter, sides[1].letter)
    return Match(condition, letters, tuple(pairs), tuple(a), tuple(b), tuple(why))


def twins(a: Sample, b: Sample) -> bool:
    """Returns whether two samples are the same run, or a repetition to the byte.

    They are if they have the same judged figures with equal values, and one figure above zero comes from a
    clock so fine that chance does not repeat it. Without this rule, equal counts would be compared as if each
    had been drawn by itself.
    """
    keys = [key for key in a.metrics if judged(*key)]
    fine = any(not is_stepped(a.metrics[key].unit) and a.metrics[key].value > 0 for key in keys)
    return fine and keys == [key for key in b.metrics if judged(*key)] and all(
        math.isclose(a.metrics[key].value, b.metrics[key].value, rel_tol=EQUAL) for key in keys
    )  # fmt: skip


def _why(alone: list[Sample], left: list[Sample], sides: tuple[Side, Side]) -> list[str]:
    """Returns a sentence for each reason why samples have no partner: another schedule, or no run with their
    seed.
    """
    found = []
    seeds = {one.seed for one in alone} & {one.seed for one in left}
    if any(one.schedule != two.schedule for one in alone for two in left if one.seed == two.seed):
        found.append(f"the runs with {_seeds(seeds)} send by other schedules in {sides[0].letter} than in "
                     f"{sides[1].letter}")  # fmt: skip
    for side, rest in zip(sides, (alone, left), strict=True):
        other = sides[1] if side is sides[0] else sides[0]
        if only := {one.seed for one in rest} - seeds:
            found.append(f"{other.letter} has no further run with {_seeds(only)} of {side.letter}")
    return found


def _seeds(seeds: set[str]) -> str:
    """Returns seeds as text, such as "the seed 1" or "the seeds 1, 2, 3"; after MOST_SEEDS only their number
    follows.
    """
    known = sorted(seeds, key=by_number)
    more = f" and {len(known) - MOST_SEEDS} more" if len(known) > MOST_SEEDS else ""
    return f"the seed{'s' if len(known) > 1 else ''} {', '.join(known[:MOST_SEEDS])}{more}"


def _by_condition(side: Side, factors: Sequence[str]) -> dict[Condition, list[Sample]]:
    found: dict[Condition, list[Sample]] = {}
    for one in side.samples:
        condition = tuple((name, one.levels.get(name, "no level")) for name in factors)
        found.setdefault(condition, []).append(one)
    return found


def _text(condition: Condition) -> str:
    return ", ".join(f"{name} {level}" for name, level in condition) or "the same parameters"
