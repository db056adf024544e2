"""One claim of a paper, with the rule that it is judged by."""

from __future__ import annotations

from dataclasses import dataclass

from reports.claims.evidence import Evidence, Quantity
from reports.claims.figures import Rule
from reports.claims.verdict import Judgement, needs

COUNTED = "cpu"  # of nodes: a tick misses some of their work, or all, so nothing follows from it


@dataclass(frozen=True)
class Clients:
    """How many clients a run must have for its values to be compared with the published ones."""

    published: int
    at_least: int
    at_most: int


@dataclass(frozen=True)
class Claim:
    """`text` is what the paper says; `rule` how it is judged here, in words; `how` the same as data."""

    key: str
    figures: str
    text: str
    rule: str
    how: Rule
    quantities: tuple[Quantity, ...]  # that the rule uses, the judged ones first
    clients: Clients | None = None

    @property
    def title(self) -> str:
        """As verdicts.json names it."""
        return f"{self.key}: {self.text}"

    def judge(self, evidence: Evidence) -> Judgement:
        """The verdict on the evidence, with its reason; open where something that it needs was not run."""
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
