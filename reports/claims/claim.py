"""Defines a claim of a paper, with the rule that judges it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from reports.claims.evidence import Evidence, Quantity
from reports.claims.expression import Expression
from reports.claims.figures import Figures, Rule
from reports.claims.verdict import GIVEN, HOLDS, OPEN, Judgement, needs

# the metric of CPU time; if the kernel counts it in ticks, short work is missed, so no verdict is possible
COUNTED = "cpu"
ENOUGH = 99.0  # least share of the messages in per cent: the missing ones may be those that came late
Kind = Literal["value", "order"]
# keys of a figure's subject that did not exist when examples with hashes of their rules were made
LATER = ("program",)


@dataclass(frozen=True)
class Clients:
    """The published number of clients, and the range of numbers for which a run is comparable with the
    published values.
    """

    published: int
    at_least: int
    at_most: int


@dataclass(frozen=True)
class Claim:
    """A claim: `figures` names figures of the paper, `text` is from the paper, `rule` describes the judgement
    in words, and `how` is the same rule as data.

    With `printed`, a number that the paper states, the claim is judged on the value; without, on an order.
    """

    key: str
    figures: str
    text: str
    rule: str
    how: Rule
    quantities: tuple[Quantity, ...]  # the quantities that the rule uses, the judged ones first
    clients: Clients | None = None
    printed: str = ""  # the number that the paper states, with its unit
    set_up: str = ""  # if part of the result was built into the set-up: the sentence that explains this
    complete: Expression | None = None  # share of the messages, in per cent, that the judged figures include

    @property
    def kind(self) -> Kind:
        """`value` if the paper states a number, else `order`."""
        return "value" if self.printed else "order"

    @property
    def rule_hash(self) -> str:
        """A hash of all that decides the verdict: published examples state by which rule they were judged.

        An unset quality of `LATER` is left out, so that a new quality of figures changes no rule.
        """
        of = repr((self.rule, self.how, self.clients, self.set_up, self.complete))
        for quality in LATER:
            of = of.replace(f", {quality}=None", "")
        return hashlib.sha256(of.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """The name of the claim in verdicts.json: its key and its text."""
        return f"{self.key}: {self.text}"

    def judge(self, evidence: Evidence) -> Judgement:
        """Returns the verdict of the rule on the evidence with its reason.

        It is "cannot tell" if a needed run is missing, if the number of clients in the first quantity's
        scenario is outside `clients`, or if the claim is about CPU and the kernel counts CPU in ticks of 10
        ms.
        """
        if evidence.ticked and any(q.metric == COUNTED for q in self.quantities):
            return needs("a kernel that counts CPU finer than in ticks of 10 ms")
        judged = self._wrong_size(evidence) or self.how.judge(evidence)
        return self.settled(self._of_survivors(evidence, judged))

    def settled(self, judged: Judgement) -> Judgement:
        """Returns "by construction" in place of "holds" if the claim's content is part of the set-up."""
        if not self.set_up or judged.verdict != HOLDS:
            return judged
        return Judgement(GIVEN, f"{judged.reason}; {self.set_up}")

    def _of_survivors(self, evidence: Evidence, judged: Judgement) -> Judgement:
        """Returns "cannot tell" in place of "holds" if the judged figures leave out too many messages, at the
        rule's level if it has one, else at any level.
        """
        if self.complete is None or judged.verdict != HOLDS:
            return judged
        figures = Figures({quantity.name: quantity for quantity in self.quantities})
        only = getattr(self.how, "level", None)
        found = [
            self.complete.value(figures.at(evidence, level, self.complete))
            for level in figures.levels(evidence, self.complete)
            if only in (None, level)
        ]
        shares = [share.value for share in found if share is not None]
        if len(shares) == len(found) and shares and min(shares) >= ENOUGH:
            return judged
        share = f"of {min(shares):.0f} %" if shares else "of an unknown share"
        why = f"it is {share} of the messages only, and the others may be the late ones"
        return Judgement(OPEN, f"{judged.reason}; {why}")

    def _wrong_size(self, evidence: Evidence) -> Judgement | None:
        if self.clients is None:
            return None
        scenario = self.quantities[0].scenario
        number = evidence.clients(scenario)
        if not number:
            return needs(f"a run of {scenario}")
        if self.clients.at_least <= number <= self.clients.at_most:
            return None
        published = self.clients.published
        return needs(f"about {published} clients, since the value depends on their number; this had {number}")
