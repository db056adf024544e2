"""Defines the rule that the load of nodes rises with the number of connected clients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from reports.claims.evidence import Evidence, Level
from reports.claims.expression import Expression, ExpressionError
from reports.claims.figures import Figures
from reports.claims.verdict import FAILS, HOLDS, OPEN, Judgement, Value, needs, together

FEWEST = 4  # least number of steps, because the error of a correlation over n steps divides by n - 3


@dataclass(frozen=True)
class RankCorrelation:
    """Judges whether the load of nodes rises with the clients over the ramp, by Spearman's rank correlation
    at each level.

    Levels whose ramp has fewer than `fewest_steps` steps are left out; if no level remains, the verdict is
    "cannot tell".
    """

    figures: Figures
    rank_correlation: Expression
    at_least: float
    fewest_steps: int  # least number of steps of a ramp that is judged

    def __post_init__(self) -> None:
        if self.fewest_steps < FEWEST:
            raise ExpressionError(
                f"fewest_steps {self.fewest_steps} gives no interval; write {FEWEST} or more"
            )
        for name in self.rank_correlation.names:
            if not self.figures.known[name].of[0].nodes:
                raise ExpressionError(f"{name} is not of nodes, so it has no curve over the ramp")

    def judge(self, evidence: Evidence) -> Judgement:
        parts = []
        for level in self.figures.levels(evidence, self.rank_correlation):
            curve = self._curve(evidence, level)
            if curve.height >= self.fewest_steps:
                from scipy import stats  # imported here: loading takes a second, and few pages need it

                rho = float(stats.spearmanr(curve["clients"], curve["value"]).statistic)
                most = max(curve["clients"].to_list())
                reason = f"rank correlation {rho:.2f} over {curve.height} steps up to {most:.0f} clients"
                parts.append((evidence.factor.label(level), self._judge(rho, curve.height, reason)))
        scenario = self.figures.scenario(self.rank_correlation)
        return (
            together(parts)
            if parts
            else needs(f"a ramp of {scenario} with at least {self.fewest_steps} samples")
        )

    def _curve(self, evidence: Evidence, level: Level) -> pl.DataFrame:
        """Returns the value of the expression at each step of the ramp, in the columns clients and value.
        Steps at which a quantity or the value is unknown are left out.
        """
        names = self.rank_correlation.names
        curves = [evidence.curve(self.figures.known[name], level) for name in names]
        joined = curves[0].select("step", "clients", pl.col("value").alias(names[0]))
        for name, curve in zip(names[1:], curves[1:], strict=True):
            joined = joined.join(curve.select("step", pl.col("value").alias(name)), on="step")
        rows = [
            (row["clients"], found.value)
            for row in joined.sort("step").iter_rows(named=True)
            if (found := self.rank_correlation.value(lambda name, row=row: _exact(row[name]))) is not None  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        ]
        return pl.DataFrame(rows, schema={"clients": pl.Float64, "value": pl.Float64}, orient="row")

    def _judge(self, rho: float, n: int, reason: str) -> Judgement:
        """Returns the verdict on one correlation over `n` steps: `holds` from `at_least` on. Below, it is
        `fails` if the whole 95 % interval is below (Fisher's z with Bonett and Wright's error), else `cannot
        tell`.
        """
        if rho >= self.at_least:
            return Judgement(HOLDS, reason)
        error = math.sqrt((1 + rho * rho / 2) / (n - 3))
        high = math.tanh(math.atanh(max(rho, -0.999999)) + 1.96 * error)
        if high < self.at_least:
            return Judgement(FAILS, reason)
        return Judgement(OPEN, f"{reason}; with so few steps it could be up to {high:.2f}")


def _exact(value: float) -> Value:
    return Value(value, None, None, "")
