"""What the claims are judged on: the metrics by scenario and QoS, and the curves over the ramp."""

from __future__ import annotations

import polars as pl

from reports.claims.verdict import Value
from reports.metrics.compare import compare
from reports.metrics.ramp import against_clients, total_clients
from reports.study import Study

ONE, TWO = "scenario 1", "scenario 2"


class Evidence:
    """Look-ups into a study. A QoS level is known only where exactly one series has it."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.table = compare(study)
        self._capture = self._busiest_capture()

    @property
    def ticked(self) -> bool:
        """Whether the CPU of nodes was counted in the timer's ticks in any run."""
        return any(cell.run.ticked for cell in self.study.cells)

    def levels(self, scenario: str) -> list[int]:
        """The QoS levels at hand in a scenario, in order."""
        rows = self.table.filter(pl.col("scenario") == scenario).drop_nulls("qos").unique(["qos", "series"])
        once = rows.group_by("qos").len().filter(pl.col("len") == 1)
        return sorted(int(q) for q in once.get_column("qos"))

    def value(self, scenario: str, qos: int, name: str, scope: str) -> Value | None:
        """The metric, or None where it was not measured."""
        rows = self.table.filter(
            (pl.col("scenario") == scenario)
            & (pl.col("qos") == qos)
            & (pl.col("name") == name)
            & (pl.col("scope") == scope)
        )
        if rows.height != 1:
            return None
        row = rows.row(0, named=True)
        return Value(row["value"], row["low"], row["high"], row["unit"])

    def packets(self, scenario: str, qos: int, name: str, bin_name: str = "") -> Value | None:
        """A packet metric at the capture that saw most, for one size bin if named."""
        return self.value(scenario, qos, name, f"{self._capture} {bin_name}".strip())

    def host(self, scenario: str, qos: int) -> Value | None:
        """Busy share of the machine outside where known, else of the lab's kernel."""
        outer = self.value(scenario, qos, "host_busy", "outer")
        return outer or self.value(scenario, qos, "host_busy", "lab")

    def clients(self, scenario: str) -> int:
        """Clients of the scenario's runs; 0 where there is none."""
        return max((total_clients(c.run) for c in self.study.cells if c.scenario == scenario), default=0)

    def curve(self, scenario: str, qos: int, quantities: tuple[str, ...]) -> pl.DataFrame:
        """clients, value: the broker's load over the ramp, quantities added up, of all repetitions."""
        parts = []
        for cell in self.study.cells:
            if cell.scenario == scenario and cell.qos == qos:
                rows = against_clients(cell.run, "broker")
                if rows is not None:
                    parts.append(
                        rows.filter((pl.col("part") == "ramp") & pl.col("quantity").is_in(quantities))
                    )
        if not parts:
            return pl.DataFrame(schema={"step": pl.Int64, "clients": pl.Float64, "value": pl.Float64})
        by_quantity = pl.concat(parts).group_by("step", "quantity").agg(pl.col("clients", "value").mean())
        return by_quantity.group_by("step").agg(pl.col("clients").mean(), pl.col("value").sum()).sort("step")

    def _busiest_capture(self) -> str:
        seen = self.table.filter(pl.col("name") == "packets").sort("value", descending=True)
        return "" if seen.is_empty() else str(seen.item(0, "scope"))
