"""Counts measured times over all runs of a condition: exactly for up to half a million different times, else
rounded to four digits.
"""

from __future__ import annotations

import polars as pl

# largest number of different times in all curves together; counting twice as many takes 0.3 GB
MOST = 500_000
DIGITS = 4  # significant digits of a time if there are more different times; no curve shows the rounding
SCHEMA = {"curve": pl.UInt32, "time_ns": pl.Int64, "count": pl.UInt32}


class Pooled:
    """Counts of times by curve; above the limit of different times they are rounded to DIGITS digits, so that
    memory does not grow with the number of runs.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._rounded = False
        self._parts = [pl.DataFrame(schema=SCHEMA)]

    def add(self, curve: int, times_ns: pl.Series) -> None:
        """Adds the times of a run to a curve, in ns."""
        rows = pl.select(curve=pl.lit(curve, pl.UInt32), time_ns=times_ns, count=pl.lit(1, pl.UInt32))
        self._parts.append(self._counted([rows]))
        if sum(part.height for part in self._parts) > 2 * self._most:
            self._join()

    def of(self, curve: int) -> pl.DataFrame:
        """Returns the times of a curve: columns time_ns (sorted, each once) and count."""
        self._join()
        return self._parts[0].filter(pl.col("curve") == curve).drop("curve").sort("time_ns")

    def _join(self) -> None:
        if len(self._parts) == 1:
            return
        found = self._counted(self._parts)
        if found.height > self._most and not self._rounded:
            self._rounded = True
            found = self._counted([found])
        self._parts = [found]

    def _counted(self, parts: list[pl.DataFrame]) -> pl.DataFrame:
        rows = pl.concat(parts)
        if self._rounded:
            rounded = pl.col("time_ns").cast(pl.Float64).round_sig_figs(DIGITS)
            rows = rows.with_columns(rounded.round().cast(pl.Int64))
        return rows.group_by("curve", "time_ns").agg(pl.col("count").sum())
