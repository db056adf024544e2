"""Compares measured delays with their network-calculus bounds; a delay above its bound
disproves the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from contract.verdict import FAILS
from reports.metrics.messages import held_messages
from reports.rundir import Run

CHANGES = ("impair", "link-down", "link-up")  # timeline actions that bounds do not cover
MOST_NAMED = 3  # largest number of links named that failed their checks
KNOWN = {"name": pl.String, "receiver": pl.String, "worst_ns": pl.Int64}
TAKEN = {"class": pl.String, "took_ns": pl.Int64, "worst_ns": pl.Int64, "after_ns": pl.Int64}


@dataclass(frozen=True)
class Bounded:
    """One class of traffic: the bounds of its flows in ns, and its measured delays against them."""

    traffic_class: str
    least_ns: int
    worst_ns: int | None  # the largest bound of the class's flows; None: there is none, for the reason `why`
    why: str
    count: int  # messages of flows with a bound
    largest_ns: int | None  # largest time of a message; for a request, until its reply
    over: int  # number of messages that took longer than their own flow's bound
    doubt: str  # if some took longer: the part of the model that may be wrong; else empty


def bounded(run: Run) -> list[Bounded]:
    """Returns one `Bounded` for each class with bounds, in the order of the plan; empty for a run without
    bounds.
    """
    classes: dict[str, list[dict[str, object]]] = {}
    for row in run.bounds.get("bounds", []):
        classes.setdefault(str(row["class"]), []).append(row)
    taken = taken_ns(run) if classes else pl.DataFrame(schema=TAKEN)
    return [_of_class(run, name, rows, taken) for name, rows in classes.items()]


def taken_ns(run: Run) -> pl.DataFrame:
    """Returns the columns class, took_ns (from the scheduled time to delivery, or to the reply of a request),
    worst_ns (the bound), after_ns (as took_ns, from the actual sending) of messages of the hold with a bound.

    A flow's first message waits for ARP, which no bound covers: messages due before its arrival, or within
    the time of the bound after it, are left out. So are messages that did not arrive.
    """
    rows = [
        (one["flow"], one["receiver"], one["worst_ns"])
        for one in run.bounds.get("bounds", [])
        if one["worst_ns"] is not None
    ]
    known, held = pl.DataFrame(rows, schema=KNOWN, orient="row"), held_messages(run)
    if held is None:
        return pl.DataFrame(schema=TAKEN)
    took = pl.when(pl.col("pattern") == "request").then("round_trip_ns").otherwise("latency_ns")
    settled = pl.col("received_ns").min().over("name", "receiver")
    late = pl.col("sent_ns") - pl.col("scheduled_ns")
    return (
        held.join(known, on=("name", "receiver"))
        .filter(pl.col("scheduled_ns") > settled + pl.col("worst_ns"))
        .with_columns(took_ns=took)
        .with_columns(after_ns=pl.col("took_ns") - late)
        .drop_nulls("took_ns")
        .select(*TAKEN)
    )


def _of_class(run: Run, name: str, rows: list[dict[str, object]], taken: pl.DataFrame) -> Bounded:
    here = taken.filter(pl.col("class") == name)
    over = here.filter(pl.col("took_ns") > pl.col("worst_ns"))
    largest = here.get_column("took_ns").max()
    worst = [row["worst_ns"] for row in rows if row["worst_ns"] is not None]
    return Bounded(
        name,
        min(int(str(row["least_ns"])) for row in rows),
        max((int(str(one)) for one in worst), default=None),
        next((str(row["no_bound_because"]) for row in rows if row["worst_ns"] is None), ""),
        here.height,
        None if largest is None else int(str(largest)),
        over.height,
        _doubt(run, over) if over.height else "",
    )


def _doubt(run: Run, over: pl.DataFrame) -> str:
    """Returns the part of the model that the delays above their bound disprove. These are the sending nodes
    if the delays are within the bound from the actual sending; else the links if the timeline changes them or
    their proof failed; else the receiving nodes or other traffic.
    """
    allowed = f"assumed to need at most {_us(run.bounds.get('node_ns', 0))} each"
    on_time = over.filter(pl.col("after_ns") > pl.col("worst_ns"))
    if on_time.is_empty():
        late = (over.get_column("took_ns") - over.get_column("after_ns")).max()
        return f"the sending end nodes, {allowed}: they sent up to {_us(late)} after the scheduled time"
    longer = (on_time.get_column("after_ns") - on_time.get_column("worst_ns")).max()
    said = f"after the sending, some took up to {_us(longer)} longer than the whole bound"
    failed = list(dict.fromkeys(one.link for one in run.proof if one.verdict == FAILS))
    if any(event.action in CHANGES for event in run.plan.events):
        return f"the links, which the timeline changes: {said}"
    if failed:
        more = f" and {len(failed) - MOST_NAMED} more" if len(failed) > MOST_NAMED else ""
        return f"the links ({', '.join(failed[:MOST_NAMED])}{more} failed their checks): {said}"
    return f"the receiving end nodes, {allowed}, or other traffic on the links: {said}"


def _us(ns: object) -> str:
    return f"{float(str(ns)) / 1e3:,.1f} us".replace(".0 us", " us")
