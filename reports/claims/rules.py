"""Defines the rules that judge claims; claims.yaml names each by its key in RULES."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from reports.claims.correlation import RankCorrelation
from reports.claims.evidence import Evidence, Level
from reports.claims.expression import Expression, ExpressionError
from reports.claims.figures import Bounds, Figures, Rule, at_all_levels
from reports.claims.template import Template
from reports.claims.verdict import FAILS, HOLDS, OPEN, Judgement, Value, needs, positive, together


def _some_bound(*bounds: float | None) -> None:
    if all(bound is None for bound in bounds):
        raise ExpressionError("has no bound; write above, at_least, below or at_most")


@dataclass(frozen=True)
class EveryLevel:
    """Holds if a value is within bounds at every measured level, or at the one `level`; with `all_levels`, at
    every level of the factor. Without a measured value, the verdict is "cannot tell", with the reason
    `needs`.

    The whole 95 % interval must be within the bounds; a value without an interval is judged by itself. With
    `interval`, the rule fails if the value is on the wrong side of a bound by more than its interval, and
    holds if it is on the right side of each bound by more than that. Otherwise, or without an interval, the
    verdict is "cannot tell".
    """

    figures: Figures
    every_level: Expression
    says: Template
    needs: str
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    interval: bool = False
    level: Level | None = None
    all_levels: bool = False

    def __post_init__(self) -> None:
        _some_bound(self.above, self.at_least, self.below, self.at_most)

    def judge(self, evidence: Evidence) -> Judgement:
        parts = []
        for level in self.figures.levels(evidence, self.every_level):
            lookup = self.figures.at(evidence, level, self.every_level)
            value, reason = self.every_level.value(lookup), self.says.text([lookup])
            if value is not None and reason is not None and self.level in (None, level):
                parts.append((evidence.factor.label(level), self._judge(value, reason)))
        parts += _absent(parts, evidence, self.needs) if self.all_levels else []
        if not parts:
            return needs(self.needs)
        return parts[0][1] if self.level is not None else together(parts)

    def _judge(self, value: Value, reason: str) -> Judgement:
        bounds = Bounds(self.above, self.at_least, self.below, self.at_most)
        if not self.interval or value.half == 0:
            return bounds.judge(value, reason)
        sides = [(1, one) for one in (self.above, self.at_least) if one is not None]
        sides += [(-1, one) for one in (self.below, self.at_most) if one is not None]
        judged = [
            positive([(sign, value), (-sign, Value(one, one, one, value.unit))], reason)
            for sign, one in sides
        ]
        return next((one for word in (FAILS, OPEN) for one in judged if one.verdict == word), judged[0])


def _absent(parts: list[tuple[str, Judgement]], evidence: Evidence, what: str) -> list[tuple[str, Judgement]]:
    """Returns "cannot tell" for each level of the factor that has no part."""
    judged = {label for label, _ in parts}
    labels = [evidence.factor.label(level) for level in evidence.factor.levels]
    return [(label, needs(what)) for label in labels if label not in judged]


@dataclass(frozen=True)
class Largest:
    """Holds if the largest value over the measured levels is within bounds; "cannot tell" if none was
    measured. `says` is the sentence for one level; `heading` introduces the sentences of all levels.
    """

    figures: Figures
    largest: Expression
    heading: str
    says: Template
    needs: str
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        _some_bound(self.above, self.at_least, self.below, self.at_most)

    def judge(self, evidence: Evidence) -> Judgement:
        found: dict[str, Value] = {}
        for level in self.figures.levels(evidence, self.largest):
            lookup = self.figures.at(evidence, level, self.largest)
            value, text = self.largest.value(lookup), self.says.text([lookup])
            if value is not None and text is not None:
                found[f"{text} at {evidence.factor.label(level)}"] = value
        if not found:
            return needs(self.needs)
        bounds = Bounds(self.above, self.at_least, self.below, self.at_most)
        most = max(found.values(), key=lambda one: one.value)
        return bounds.judge(most, f"{self.heading}: {', '.join(found)}")


@dataclass(frozen=True)
class Steps:
    """Holds if the value rises from each level to the next by more than the 95 % interval of the step. A step
    within its interval, or a level without a value, gives "cannot tell"; a fall beyond the interval fails.
    """

    figures: Figures
    steps: Expression
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        return _steps(self.figures, self.steps, evidence, self.needs, 1)


@dataclass(frozen=True)
class StepsDown:
    """Holds if the value falls from each level to the next by more than the 95 % interval of the step. A step
    within its interval, or a level without a value, gives "cannot tell"; a rise beyond the interval fails.
    """

    figures: Figures
    steps_down: Expression
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        return _steps(self.figures, self.steps_down, evidence, self.needs, -1)


def _steps(figures: Figures, asked: Expression, evidence: Evidence, needs: str, sign: int) -> Judgement:
    found = at_all_levels(figures, asked, evidence, needs)
    if isinstance(found, Judgement):
        return found
    judged = []
    for a, b in pairwise(found):
        one, two = found[a], found[b]
        step = positive([(sign, two), (-sign, one)], f"{one.bare} to {two}")
        judged.append((f"{a} to {b}", step))
    return together(judged)


@dataclass(frozen=True)
class SteeperStep:
    """Holds if the last step between levels is at least `times` the step before, judged as one contrast of
    three values with its 95 % interval; "cannot tell" if a level has no value.
    """

    figures: Figures
    steeper_step: Expression
    times: float
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        found = at_all_levels(self.figures, self.steeper_step, evidence, self.needs)
        if isinstance(found, Judgement):
            return found
        (a, b, c), (v0, v1, v2) = list(found)[-3:], list(found.values())[-3:]
        small, large = v1.value - v0.value, v2.value - v1.value
        reason = f"step {a} to {b} is {small:+.3g}, step {b} to {c} is {large:+.3g} {v0.unit}"
        return positive([(1, v2), (-1 - self.times, v1), (self.times, v0)], reason)


@dataclass(frozen=True)
class Monotonic:
    """Holds if `rises` rises and `falls` falls from each level to the next, else fails; intervals are not
    used. "Cannot tell" if a level has no value.
    """

    figures: Figures
    rises: Expression
    falls: Expression
    says: Template
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        rising = at_all_levels(self.figures, self.rises, evidence, self.needs)
        falling = at_all_levels(self.figures, self.falls, evidence, self.needs)
        if isinstance(rising, Judgement) or isinstance(falling, Judgement):
            return rising if isinstance(rising, Judgement) else needs(self.needs)
        up = [v.value for v in rising.values()]
        down = [-v.value for v in falling.values()]
        ok = all(a < b for values in (up, down) for a, b in pairwise(values))
        lookups = [self.figures.at(evidence, level, self.rises) for level in rising]
        levels = " / ".join(str(level) for level in rising)
        reason = f"{evidence.factor.title} {levels}: {self.says.text(lookups)}"
        return Judgement(HOLDS if ok else FAILS, reason)


@dataclass(frozen=True)
class Near:
    """Holds if `to` differs from `near` by less than the share `by` of `near`, at every level at which both
    were measured and `near` is above zero.

    Both borders of the band are judged as contrasts with their intervals. Without such a level, the verdict
    is "cannot tell".
    """

    figures: Figures
    near: Expression
    to: Expression
    by: float
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        parts = []
        for level in self.figures.levels(evidence, self.near, self.to):
            one, two = (of.value(self.figures.at(evidence, level, of)) for of in (self.near, self.to))
            if one and two and one.value > 0:
                parts.append((evidence.factor.label(level), self._judge(one, two)))
        return together(parts) if parts else needs(self.needs)

    def _judge(self, one: Value, two: Value) -> Judgement:
        change = f"{one.bare} to {two} ({two.value / one.value - 1:+.1%})"
        above = positive([(1 + self.by, one), (-1, two)], change)
        below = positive([(1, two), (self.by - 1, one)], change)
        for word in (FAILS, OPEN):
            for judged in (above, below):
                if judged.verdict == word:
                    return judged
        return above


@dataclass(frozen=True)
class Highest:
    """Holds if a value is above each of the others by more than the 95 % interval of their difference, at
    every measured level, at the one `level`, or with `all_levels` at every level of the factor. `0 - E` finds
    the lowest.
    """

    figures: Figures
    highest: Expression
    of: tuple[Expression, ...]
    says: Template
    needs: str
    level: Level | None = None
    all_levels: bool = False

    def judge(self, evidence: Evidence) -> Judgement:
        parts = []
        for level in self.figures.levels(evidence, self.highest, *self.of):
            lookup = self.figures.at(evidence, level, self.highest)
            first, others = self.highest.value(lookup), [one.value(lookup) for one in self.of]
            reason = self.says.text([lookup])
            if first is not None and None not in others and reason and self.level in (None, level):
                judged = [positive([(1, first), (-1, one)], "") for one in others if one is not None]
                worst = together([("", one) for one in judged])
                parts.append(
                    (evidence.factor.label(level), Judgement(worst.verdict, reason + _unsure(judged)))
                )
        parts += _absent(parts, evidence, self.needs) if self.all_levels else []
        if not parts:
            return needs(self.needs)
        return parts[0][1] if self.level is not None else together(parts)


def _unsure(judged: list[Judgement]) -> str:
    """Returns why the first open comparison is open; empty if none is open, or one fails."""
    words = [one.verdict for one in judged]
    return next((one.reason for one in judged if one.verdict == OPEN), "") if FAILS not in words else ""


@dataclass(frozen=True)
class LevelAbove:
    """Holds if the value at `level` is more than `times` the value at each other level of the factor."""

    figures: Figures
    level_above: Expression
    level: Level | None
    times: float
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        found = at_all_levels(self.figures, self.level_above, evidence, self.needs)
        if isinstance(found, Judgement) or self.level is None:
            return found if isinstance(found, Judgement) else needs(self.needs)
        own = found[self.level]
        others = [(level, value) for level, value in found.items() if level != self.level]
        reason = ", ".join(f"{value} at {evidence.factor.label(level)}" for level, value in found.items())
        judged = [positive([(1, own), (-self.times, value)], "") for _, value in others]
        return Judgement(together([("", one) for one in judged]).verdict, reason + _unsure(judged))


@dataclass(frozen=True)
class Spread:
    """Holds if the largest value over the levels is above the smallest by less than the share `by`."""

    figures: Figures
    spread: Expression
    by: float
    needs: str

    def judge(self, evidence: Evidence) -> Judgement:
        found = at_all_levels(self.figures, self.spread, evidence, self.needs)
        if isinstance(found, Judgement):
            return found
        values = sorted(found.values(), key=lambda one: one.value)
        least, most = values[0], values[-1]
        reason = f"from {least} to {most}"
        return positive([(1 + self.by, least), (-1, most)], reason)


@dataclass(frozen=True)
class NotJudged:
    """The verdict "cannot tell" for the given reason, since no measurement can decide the claim."""

    figures: Figures
    not_judged: str

    def judge(self, evidence: Evidence) -> Judgement:
        return Judgement(OPEN, self.not_judged)


RULES: dict[str, type[Rule]] = {
    "every_level": EveryLevel,
    "largest": Largest,
    "steps": Steps,
    "steps_down": StepsDown,
    "steeper_step": SteeperStep,
    "rises": Monotonic,
    "rank_correlation": RankCorrelation,
    "near": Near,
    "highest": Highest,
    "level_above": LevelAbove,
    "spread": Spread,
    "not_judged": NotJudged,
}
# The rules that compare levels; with fewer levels than these need, nothing could contradict the claim.
FEWEST_LEVELS = {
    **dict.fromkeys(("steps", "steps_down", "rises", "level_above", "spread"), 2),
    "steeper_step": 3,
}
