"""Makes tables 1 to 3: round trips of all repetitions together and of each, beside the printed values; and
the metric of the least round trips.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from reports.cell import Cell
from reports.metrics.messages import held_messages
from reports.metrics.metric import Metric, Of, count
from reports.papers.paper import Table
from reports.papers.published import reference
from reports.rundir import Run
from reports.study import Study

ROOM = Path(__file__).parent
# Captions by the first part of a traffic class; the second part is the load (LOADS).
TAGGING = {
    "untagged": "Table 1. Untagged frames",
    "tagged": "Table 2. Tagged frames, no priority queues in the end nodes",
    "queues": "Table 3. Tagged frames, strict priority in the end nodes",
}
LOADS = {"alone": "no load", "receive": "receive load", "transmit": "transmit load"}
FIGURES = ("mean", "std", "max", "min")
LEAST = "priority_least"
CLASSES = frozenset(f"{tagging}-{load}" for tagging in TAGGING for load in LOADS)
Statistics = dict[tuple[str, str], dict[str, float]]  # by tagging and load


def tables(study: Study) -> tuple[Table, ...]:
    """Returns those of tables 1 to 3 that have measured values: the combined rows, and the single series if
    there are several repetitions.
    """
    found, each = statistics(study.cells), [statistics([cell]) for cell in study.cells]
    measured = [tagging for tagging in TAGGING if any(key[0] == tagging for key in found)]
    several = measured if len(each) > 1 else []
    combined = [_table(tagging, found) for tagging in measured]
    return (*combined, *(_series(tagging, each) for tagging in several))


def statistics(cells: Iterable[Cell]) -> Statistics:
    """Returns mean, std, max, min of the round trips of the hold in us, over all these repetitions, and the
    numbers of answers (n) and requests (requested), by (tagging, load); pairs with fewer than two answers
    are left out.
    """
    held = [rows for cell in cells if (rows := held_messages(cell.run)) is not None]
    if not held:
        return {}
    named = pl.col("class").str.split_exact("-", 1)
    trip = pl.col("round_trip_ns") / 1e3
    rows = (
        pl.concat([rows.select("class", "round_trip_ns") for rows in held])
        .with_columns(tagging=named.struct.field("field_0"), load=named.struct.field("field_1"))
        .filter(pl.col("tagging").is_in(list(TAGGING)) & pl.col("load").is_in(list(LOADS)))
        .group_by("tagging", "load")
        .agg(
            mean=trip.mean(),
            std=trip.std(),
            max=trip.max(),
            min=trip.min(),
            n=trip.count(),
            requested=pl.len(),
        )
    )
    return {
        (row["tagging"], row["load"]): {k: row[k] for k in (*FIGURES, "n", "requested")}
        for row in rows.iter_rows(named=True)
        if row["n"] > 1
    }


def _table(tagging: str, found: dict[tuple[str, str], dict[str, float]]) -> Table:
    rows = []
    for load, title in LOADS.items():
        measured, paper = found.get((tagging, load), {}), printed(tagging, load)
        row = [title]
        for name in FIGURES:
            row.append(f"{measured[name]:.1f}" if name in measured else "")
            row.append(f"{paper[name]:g}" if name in paper else "")
        row.append(f"{measured['n']:.0f} of {measured['requested']:.0f}" if measured else "")
        rows.append(tuple(row))
    head = ("round trip, us", *(word for name in FIGURES for word in (name, "paper")), "answered")
    caption = f"{TAGGING[tagging]}. All repetitions together; the paper has 800 of each, and one baseline."
    return Table("", caption, head, tuple(rows), printed=(2, 4, 6, 8))


def _series(tagging: str, each: Sequence[Statistics]) -> Table:
    """Returns the series of a table: the k-th repetition beside the k-th printed series; a cell is empty
    where one of the two has fewer.
    """
    rows = []
    for load in ("receive", "transmit"):
        paper = printed_series(tagging, load)
        for k in range(max(len(each), len(paper))):
            measured = each[k].get((tagging, load), {}) if k < len(each) else {}
            row = [f"{LOADS[load]}, series {k + 1}"]
            for place, name in enumerate(FIGURES):
                row.append(f"{measured[name]:.1f}" if name in measured else "")
                row.append(f"{paper[k][place]:g}" if k < len(paper) else "")
            row.append(f"{measured['n']:.0f} of {measured['requested']:.0f}" if measured else "")
            rows.append(tuple(row))
    head = ("round trip, us", *(word for name in FIGURES for word in (name, "paper")), "answered")
    caption = f"{TAGGING[tagging]}: the single series. A repetition is a series of 200."
    return Table("", caption, head, tuple(rows), printed=(2, 4, 6, 8))


def printed_series(tagging: str, load: str) -> list[list[float]]:
    """Returns the printed series of a table for a load "receive" or "transmit": four times mean, std, max
    and min in us.
    """
    return [list(row) for row in reference(ROOM)["priority_series_us"][tagging][load]]


def printed(tagging: str, load: str) -> dict[str, float]:
    """Returns the printed values (us) of a table for a load. For the load "alone", they are the paper's only
    baseline.
    """
    figures = reference(ROOM)["priority_measurement_us"]
    return dict(figures["baseline"] if load == "alone" else figures[tagging][load])


def least_metrics(run: Run) -> list[Metric]:
    """Returns for each traffic class of tables 1 to 3 the least round trip of the hold in ms; empty for
    runs without such a class. A class without an answer is left out.
    """
    held = held_messages(run)
    if held is None:
        return []
    rows = (
        held.filter(pl.col("class").is_in(CLASSES) & pl.col("round_trip_ns").is_not_null())
        .group_by("class")
        .agg(least=pl.col("round_trip_ns").min(), n=pl.len())
        .sort("class")
    )
    return [
        count(LEAST, Of(traffic_class=name), least / 1e6, "ms", n, "least")
        for name, least, n in rows.iter_rows()
    ]
