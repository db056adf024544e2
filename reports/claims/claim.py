"""Defines a claim of a paper, with the rule that judges it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.claims.evidence import Evidence, Quantity
from reports.claims.figures import Rule
from reports.claims.verdict import Judgement, needs

COUNTED = "cpu"  # the metric of CPU time; counted in ticks, it misses short work, so no verdict is possible


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
    """A claim: `figures` names figures of the paper, `text` is from the paper, `rule` says in words how it is
    judged, and `how` is the same rule as data.
    """

    key: str
    figures: str
    text: str
    rule: str
    how: Rule
    quantities: tuple[Quantity, ...]  # the quantities that the rule uses, the judged ones first
    clients: Clients | None = None

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
        return self._wrong_size(evidence) or self.how.judge(evidence)

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
