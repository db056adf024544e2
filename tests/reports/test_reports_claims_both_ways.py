"""Tests that every claim of every paper can hold and can fail: no rule gives the same verdict for all
measurements.

Figures are drawn at random until a claim has had both verdicts.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import polars as pl
import pytest

from reports.claims.claim import Claim
from reports.claims.correlation import RankCorrelation
from reports.claims.document import Claims
from reports.claims.evidence import Evidence, Level, Quantity
from reports.claims.rules import NotJudged
from reports.claims.verdict import FAILS, GIVEN, HOLDS, OPEN, Value
from reports.papers import PAPERS
from reports.study import Study

TRIES = 6000
NO_STUDY = Study("drawn", Path("nowhere"), (), False)
EVERY = [(name, claim.key) for name, paper in PAPERS.items() for claim in paper.claims().claims]
# The pattern finds numbers with a unit, on which a claim must be judged; a number without a unit is only part
# of a name.
QUOTED = re.compile(r"\d (?:ms|us|B|kB|MB|%|times|packets|pairs)\b|\d+ (?:times|%)")


class Drawn(Evidence):
    """Evidence with figures drawn at random from a wide range; they are similar at all levels, and sometimes
    zero.
    """

    def __init__(self, claims: Claims, chance: random.Random) -> None:
        self.study, self.factor, self.table = NO_STUDY, claims.factor, pl.DataFrame()
        scenarios = {quantity.scenario for quantity in claims.quantities.values()}
        self.series = {(scenario, level): "" for scenario in scenarios for level in claims.factor.levels}
        self.alike, self.centre = chance.random() < 0.7, 10 ** chance.uniform(-3, 5)
        self.width = chance.choice((0.02, 0.3, 2.0, 5.0))
        self.sign = chance.choice((0, -1, 1, 1, 1, 1, 1, 1))
        self.chance, self.known = chance, dict[tuple[str, Level], float]()

    def value(self, quantity: Quantity, level: Level) -> Value | None:
        place = (quantity.name, self.factor.levels[0] if self.alike else level)
        if place not in self.known:
            self.known[place] = (
                self.sign * self.centre * 10 ** self.chance.uniform(-self.width, self.width / 10)
            )
        return Value(self.known[place], self.known[place], self.known[place], "")

    def clients(self, scenario: str) -> int:
        return 350


def claim_of(paper: str, key: str) -> Claim:
    return next(claim for claim in PAPERS[paper].claims().claims if claim.key == key)


@pytest.mark.parametrize(("paper", "key"), EVERY)
def test_a_claim_can_hold_and_can_fail(paper: str, key: str) -> None:
    claims, claim = PAPERS[paper].claims(), claim_of(paper, key)
    if isinstance(claim.how, NotJudged):
        assert claim.judge(Drawn(claims, random.Random(0))).verdict == OPEN
        return
    if isinstance(claim.how, RankCorrelation):
        pytest.skip("of a curve, which test_reports_claims.py draws both ways")
    held, chance = GIVEN if claim.set_up else HOLDS, random.Random(f"{paper} {key}")
    seen: set[str] = set()
    for _ in range(TRIES):
        seen.add(claim.judge(Drawn(claims, chance)).verdict)
        if {held, FAILS} <= seen:
            return
    raise AssertionError(f"{paper}: {key}: only {sorted(seen)} in {TRIES} draws")


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claim_that_quotes_a_number_is_judged_on_it(paper: str) -> None:
    found = [one for one in PAPERS[paper].claims().claims if QUOTED.search(one.text) and not one.printed]
    assert [claim.key for claim in found] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_what_was_not_attempted_says_why(paper: str) -> None:
    claims = PAPERS[paper].claims()
    keys = [claim.key for claim in claims.claims] + [one.key for one in claims.not_attempted]
    assert len(set(keys)) == len(keys) and claims.not_attempted
