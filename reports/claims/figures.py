"""Looks up the named quantities of a claims file for the rules, at one level or at all levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from contract.plan import Bounds as Range
from reports.claims.evidence import Evidence, Level, Quantity
from reports.claims.expression import Expression, Lookup
from reports.claims.template import OWN
from reports.claims.verdict import FAILS, HOLDS, OPEN, Judgement, Value, needs


class Rule(Protocol):
    """A rule that judges a claim; its fields are the keys of the `judge` mapping in claims.yaml."""

    def judge(self, evidence: Evidence) -> Judgement:
        """Returns the verdict of the rule on the evidence, with the numbers that led to it."""


@dataclass(frozen=True)
class Figures:
    """The named quantities of a claims file, for look-up at one level; the name `value` is the judged
    expression.
    """

    known: dict[str, Quantity]

    def at(self, evidence: Evidence, level: Level, own: Expression) -> Lookup:
        def lookup(name: str) -> Value | None:
            return own.value(lookup) if name == OWN else evidence.value(self.known[name], level)

        return lookup

    def scenario(self, of: Expression) -> str:
        return self.known[of.names[0]].scenario

    def levels(self, evidence: Evidence, *of: Expression) -> list[Level]:
        """Returns the levels that were measured in the scenarios of all quantities in the expressions, in the
        factor's order.
        """
        at_hand = [evidence.levels(self.known[name].scenario) for one in of for name in one.names]
        return [level for level in at_hand[0] if all(level in levels for levels in at_hand)]


class Bounds(Range):
    """The bounds of a value, which expectations have, too; None means no bound."""

    def judge(self, value: Value, reason: str) -> Judgement:
        """Judges a value against the bounds. Its whole 95 % interval counts: if only a part of it is inside,
        the verdict is "cannot tell". A value without an interval is judged by itself.
        """
        if value.low is None or value.high is None:
            return Judgement(HOLDS if self.hold(value.value) else FAILS, reason)
        if self.hold(value.low) and self.hold(value.high):
            return Judgement(HOLDS, reason)
        if self.under(value.high) or self.over(value.low):
            return Judgement(FAILS, reason)
        return Judgement(OPEN, f"{reason}; only a part of the 95 % interval is within the rule's bounds")


def at_all_levels(
    figures: Figures, of: Expression, evidence: Evidence, what: str
) -> Judgement | dict[Level, Value]:
    """Returns the value at each level of the factor. If some levels have no value, returns "cannot tell"
    instead; its reason names them and `what`.
    """
    factor = evidence.factor
    found = {level: of.value(figures.at(evidence, level, of)) for level in factor.levels}
    known = {level: value for level, value in found.items() if value is not None}
    absent = [level for level in factor.levels if level not in known]
    return needs(f"{what} in {figures.scenario(of)} at {factor.list(absent)}") if absent else known
