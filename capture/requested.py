"""Computes the requested values of links over time: rates as steps. For links with a trace it also computes
the requested rate, delay and loss, as means over the interval before each sample.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from capture.rawfile import DECIMAL, INTEGER, NAME, OPTIONAL
from contract.events import impairments
from contract.plan import Link, Plan

Steps = list[tuple[int, int]]  # start (Unix ns) and rate (bit/s; 0: no rate) of each step, in order of time

IMPAIRMENTS = {
    "t_ns": INTEGER, "planned_ns": INTEGER, "link": NAME, "direction": NAME, "rate_bps": OPTIONAL,
    "delay_ns": INTEGER, "loss": DECIMAL,
}  # fmt: skip
COLUMNS = {"requested_bps": "rate_bps", "requested_delay_ns": "delay_ns", "requested_loss": "loss"}
KEYS = ("link", "direction")


def beside(samples: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Adds requested_bps, requested_delay_ns and requested_loss to the samples of links.

    Each is the mean over the interval before the sample. They are null for classes, for a direction's
    first sample, for directions without a trace (requested_bps: without a rate), and if the interval began
    before the trace.
    """
    numbered = samples.with_row_index("row")
    found = {name: np.full(samples.height, np.nan) for name in COLUMNS}
    whole = numbered.filter(pl.col("class").is_null())
    of = dict(changes.sort("planned_ns").partition_by(*KEYS, as_dict=True))
    for key, rows in whole.sort("t_ns").partition_by(*KEYS, as_dict=True).items():
        if (requested := of.get(key)) is not None:
            for name, column in COLUMNS.items():
                found[name][rows["row"].to_numpy()] = _means(rows["t_ns"], requested, column)
    return samples.with_columns(pl.Series(name, one).fill_nan(None) for name, one in found.items())


def _means(t_ns: pl.Series, requested: pl.DataFrame, column: str) -> NDArray[np.float64]:
    """Returns for each sample time the mean of `column` since the previous sample. `requested` has the
    changes of `column`, which is constant between them. NaN for the first sample, and if the interval
    began before the first change.
    """
    begins = requested["planned_ns"].to_numpy()
    values = requested[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    at = t_ns.to_numpy()
    zero = begins[0]
    steps = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(begins))])
    place = np.clip(np.searchsorted(begins, at, side="right") - 1, 0, None)
    whole = np.where(at >= zero, steps[place] + values[place] * (at - begins[place]), np.nan)
    means = np.full(len(at), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        means[1:] = np.diff(whole) / np.diff(at)
    return means


def rates(
    plan: Plan, events: pl.DataFrame | None, played: pl.DataFrame | None
) -> dict[tuple[str, str], Steps]:
    """Returns the requested rates (bit/s) of each direction that ever had one, as steps: the rate at the
    start, then those of successful `impair` events. For a direction with a trace (`played`: the table of
    impairments), the steps come from the trace alone. A half-duplex link has the direction "both".
    """
    found: dict[tuple[str, str], Steps] = {
        (link.name, of): [(0, link.way(name).impairment.rate_bps or 0)]
        for link in plan.links
        for name, of in _ways(link)
    }
    half = {link for link, of in found if of == "both"}
    if events is not None:
        done = events.filter((pl.col("action") == "impair") & pl.col("ok")).sort("t_ns")
        for at_ns, targets, args in done.select("t_ns", "targets", "args").iter_rows():
            for name, wanted in impairments(args):
                for link in targets:
                    of = "both" if link in half else name
                    steps = found.setdefault((link, of), [(0, 0)])
                    if steps[-1][1] != (rate := wanted.rate_bps or 0):
                        steps.append((at_ns, rate))
    if played is not None:
        changes = played.drop_nulls("rate_bps").sort("planned_ns")
        for (link, of), rows in changes.group_by("link", "direction", maintain_order=True):
            found[str(link), str(of)] = [(0, 0), *rows.select("planned_ns", "rate_bps").iter_rows()]
    return {key: steps for key, steps in found.items() if any(rate for _, rate in steps)}


def _ways(link: Link) -> list[tuple[str, str]]:
    """Returns pairs of a direction in the plan and the direction that its rate covers: "both" for a
    half-duplex link.
    """
    if link.half_duplex:
        return [("forward", "both")]
    return [("forward", "forward"), ("reverse", "reverse")]
