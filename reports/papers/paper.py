"""Defines a published paper and its contributions to a report: figures, tables, claims and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from reports.claims.claim import Claim
from reports.claims.document import Claims, read_claims
from reports.claims.evidence import Evidence, Level
from reports.claims.verdict import Judgement
from reports.figures.spec import Spec
from reports.metrics.metric import Metric
from reports.rundir import Run
from reports.study import Measures, Study

Gathers = Callable[[Study], Iterable[tuple[Level, Metric]]]


@dataclass(frozen=True)
class Table:
    """A table of a paper with vNET's measured values; the page shows it below the figure `figure`, or by
    itself if that is empty.
    """

    figure: str  # key of a Spec; "" for a table without a figure
    caption: str
    head: tuple[str, ...]
    # the first cell is the row's name; "" stands where nothing was measured
    rows: tuple[tuple[str, ...], ...]
    printed: tuple[int, ...] = ()  # numbers of the columns with the paper's values


def nothing_more(run: Run) -> list[Metric]:
    """Returns no metrics, for papers whose claims need only the metrics of every run."""
    return []


def nothing_gathered(study: Study) -> list[tuple[Level, Metric]]:
    """Returns no metrics, for papers without claims about several runs together."""
    return []


@dataclass(frozen=True)
class Paper:
    """One paper: its texts, its directory, and functions that make its figures, tables and metrics
    from a study.
    """

    name: str  # name of the paper's directory, which a topology states as `reference: {name: ...}`
    title: str
    source: str  # short citation, such as "vNET paper, 2014"
    intro: str  # a paragraph above the figures, on the possible and impossible comparisons
    room: Path  # directory of the paper, with claims.yaml and reference.yaml
    draws: Callable[[Study], tuple[Spec, ...]]
    prints: Callable[[Study], tuple[Table, ...]]
    measures: Measures = nothing_more  # metrics that the paper's claims need in addition to a run's own
    gathers: Gathers = nothing_gathered  # metrics over all runs that the claims need, with the factor's level

    def claims(self) -> Claims:
        """Returns the claims of the paper's claims.yaml; ClaimsError with file and line of each mistake."""
        return read_claims(self.room / "claims.yaml")

    def figures(self, study: Study) -> tuple[Spec, ...]:
        """Returns the definitions of the paper's figures for the study, in the paper's order."""
        return self.draws(study)

    def judged(self, study: Study) -> dict[str, tuple[Claim, Judgement]]:
        """Returns every claim by its key, with its verdict on this study, in the paper's order."""
        claims = self.claims()
        evidence = Evidence(study, claims.factor, self.measures, self.gathers(study))
        return {claim.key: (claim, claim.judge(evidence)) for claim in claims.claims}

    def tables(self, study: Study) -> tuple[Table, ...]:
        """Returns the paper's tables with the measured values beside the printed ones."""
        return self.prints(study)
