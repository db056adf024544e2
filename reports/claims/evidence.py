"""Finds the values that claims need in a study: named quantities by level of one factor, and curves over the
ramp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from reports.cell import Cell
from reports.claims.verdict import Value
from reports.metrics.compare import SCHEMA, row
from reports.metrics.metric import OF, Metric, Of
from reports.metrics.ramp import against_clients, total_clients
from reports.roles import guarantees
from reports.series import parameters
from reports.study import Measures, Study

Level = int | float | str
WHOLE = "all runs"  # the scenario of metrics that belong to the whole study and not to a run
BUSIEST = "busiest"  # the capture point with most packets


@dataclass(frozen=True)
class Factor:
    """The factor that the claims vary: the name of a topology parameter, its title in
    sentences, its levels.
    """

    name: str
    title: str
    levels: tuple[Level, ...]

    def label(self, level: Level) -> str:
        return f"{self.title} {level}"

    def list(self, levels: list[Level]) -> str:
        """Returns the title and the levels as text, such as "rate 10, 1000"."""
        return f"{self.title} {', '.join(str(level) for level in levels)}"

    def level_of(self, cell: Cell) -> Level | None:
        """Returns the factor's level that equals the run's value as text: the level in its campaign, or else
        its parameter. A run without either has the level whose label is its only delivery guarantee. None if
        no level matches.
        """
        given = cell.levels.get(self.name, parameters(cell.run).get(self.name))
        guaranteed = guarantees(cell.run)
        for level in self.levels:
            if str(given) == str(level) or (given is None and guaranteed == [self.label(level)]):
                return level
        return None


@dataclass(frozen=True)
class Quantity:
    """A named quantity of claims.yaml: a metric, its subjects (the first one that was measured counts) and a
    scenario.
    """

    name: str
    metric: str
    of: tuple[Of, ...]
    scenario: str


class Evidence:
    """Looks up values in a study. A level is known in a scenario only if exactly one series has it.

    `measures` adds metrics of each run; `gathered` adds metrics of the whole study, each for a level, under
    the scenario WHOLE.
    """

    def __init__(
        self,
        study: Study,
        factor: Factor,
        measures: Measures | None = None,
        gathered: Iterable[tuple[Level, Metric]] = (),
    ) -> None:
        self.study, self.factor = study, factor
        found = list(gathered)
        whole = pl.DataFrame(
            [row((WHOLE, factor.label(level), m.name, m.of), [m]) for level, m in found],
            schema=SCHEMA,
            orient="row",
        )
        more = [] if measures is None else [study.added(measures)]
        self.table = pl.concat([study.compared, *more, whole])
        self.series = self._series() | {(WHOLE, level): factor.label(level) for level, _ in found}

    @property
    def ticked(self) -> bool:
        """Whether the kernel counted CPU time in timer ticks in any run of the study."""
        return any(cell.run.ticked for cell in self.study.cells)

    def levels(self, scenario: str) -> list[Level]:
        """Returns the levels that exactly one series of a scenario has, in the factor's order."""
        return [level for level in self.factor.levels if (scenario, level) in self.series]

    def value(self, quantity: Quantity, level: Level) -> Value | None:
        """Returns the value of a quantity at a level, for the first of its subjects that matches exactly one
        row; None if no subject does.
        """
        series = self.series.get((quantity.scenario, level))
        for of in quantity.of if series is not None else ():
            rows = self.table.filter(
                (pl.col("scenario") == quantity.scenario)
                & (pl.col("series") == series)
                & (pl.col("name") == quantity.metric)
                & _is(self._found(of))
            )
            if rows.height == 1:
                row = rows.row(0, named=True)
                return Value(row["value"], row["low"], row["high"], row["unit"], row["method"])
        return None

    def clients(self, scenario: str) -> int:
        """Returns the largest number of clients in a run of the scenario; 0 if the scenario has no run."""
        return max((total_clients(c.run) for c in self.study.cells if c.scenario == scenario), default=0)

    def curve(self, quantity: Quantity, level: Level) -> pl.DataFrame:
        """Returns the load of the quantity's first set of nodes at each step of the ramp (step, clients,
        value), as the mean of all repetitions; empty if no run at that level has a ramp.
        """
        parts = []
        for cell in self.study.cells:
            if cell.scenario == quantity.scenario and self.factor.level_of(cell) == level:
                rows = against_clients(cell.run, quantity.of[0].nodes or "")
                if rows is not None:
                    chosen = (pl.col("part") == "ramp") & (pl.col("quantity") == quantity.metric)
                    parts.append(rows.filter(chosen).select("step", "clients", "value"))
        if not parts:
            return pl.DataFrame(schema={"step": pl.Int64, "clients": pl.Float64, "value": pl.Float64})
        return (
            pl.concat(parts)
            .group_by("step", maintain_order=True)
            .agg(pl.col("clients", "value").mean())
            .sort("step")
        )

    def _series(self) -> dict[tuple[str, Level], str]:
        found: dict[tuple[str, Level], set[str]] = {}
        for cell in self.study.cells:
            level = self.factor.level_of(cell)
            if level is not None:
                found.setdefault((cell.scenario, level), set()).add(cell.series)
        return {key: min(names) for key, names in found.items() if len(names) == 1}

    def _found(self, of: Of) -> Of:
        if of.capture != BUSIEST:
            return of
        seen = self.table.filter(pl.col("name") == "packets").sort("value", descending=True)
        return replace(of, capture="" if seen.is_empty() else str(seen.item(0, "capture")))


def _is(of: Of) -> pl.Expr:
    """Returns an expression that selects the rows with exactly this subject; a subject without a guarantee
    also matches rows that have one, because a level often implies the guarantee.
    """
    said = {field: getattr(of, field) for field in OF if field != "guarantee" or of.guarantee is not None}
    return pl.all_horizontal(pl.col(field).eq_missing(value) for field, value in said.items())
