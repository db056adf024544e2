"""Splits the time of a calm message into parts, from the programs' time stamps and the captures at both
nodes, and computes the programs' pauses and warm-up.
"""

from __future__ import annotations

import polars as pl

from reports.papers.middleware_2017.pairs import use_of
from reports.rundir import Run
from reports.series import parameters
from reports.study import Study

ONE_WAY = ("push", "publish")  # requests go both ways, and are not split
WRITE, BETWEEN, WIRE, READ = "writing", "middleware and waiting", "on the wire", "reading"
PARTS = (WRITE, BETWEEN, WIRE, READ)
SENDERS = {"push": "client", "publish": "server"}  # names of nodes and of the capture points at them
SPANS = {"write": WRITE, "read": READ}
US = 1e-3
STEP_S = 0.2  # width of the time bins of the warm-up curve


def times(study: Study) -> pl.DataFrame:
    """Returns the columns use, serialiser, pattern, part, us (mean over a pair's calm messages), bytes (of a
    message on the wire), for the patterns that are no requests.

    Only messages without another message in flight count, and only if all their parts are known. Runs without
    spans or captures have no rows.
    """
    rows = [
        (use_of(said), str(said["serialiser"]), pattern, *of_part)
        for cell in study.cells
        for said in (parameters(cell.run) | cell.levels,)
        if {"use", "serialiser"} <= said.keys()
        for pattern in ONE_WAY
        for of_part in _parts(cell.run, pattern)
    ]
    names = ("use", "serialiser", "pattern", "part")
    schema = {**dict.fromkeys(names, pl.String), "us": pl.Float64, "bytes": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _parts(run: Run, pattern: str) -> list[tuple[str, float, float]]:
    messages, spans = run.table("messages"), run.table("spans")
    if messages is None or spans is None or not set(SENDERS.values()) <= run.captures.keys():
        return []
    calm = messages.filter((pl.col("class") == pattern) & pl.col("received_ns").is_not_null())
    calm = _alone(calm.select("flow", "seq", "sent_ns", "received_ns").drop_nulls())
    for what, part in SPANS.items():
        took = spans.filter(pl.col("what") == what).select(
            "flow", pl.col("seq").cast(pl.Int64), pl.col("duration_ns").alias(part)
        )
        calm = calm.join(took, on=["flow", "seq"], how="left")
    calm = _on_the_wire(run, calm, SENDERS[pattern]).drop_nulls()
    if calm.is_empty():
        return []
    whole = pl.col("received_ns") - pl.col("sent_ns")
    calm = calm.with_columns((whole - pl.sum_horizontal(WRITE, WIRE, READ)).alias(BETWEEN))
    means = calm.select(pl.col(*PARTS, "bytes").mean()).row(0, named=True)
    return [(part, means[part] * US, means["bytes"]) for part in PARTS]


def _alone(calm: pl.DataFrame) -> pl.DataFrame:
    """Returns the messages that had no other message in flight; empty for a pair that is overloaded
    throughout.
    """
    calm = calm.sort("sent_ns")
    before, after = pl.col("received_ns").cum_max().shift(1), pl.col("sent_ns").shift(-1)
    return calm.filter(
        (before.is_null() | (before < pl.col("sent_ns")))
        & (after.is_null() | (pl.col("received_ns") < after))
    )


def _on_the_wire(run: Run, calm: pl.DataFrame, sender: str) -> pl.DataFrame:
    """Returns `calm` with two more columns: the time in ns from the first packet's departure to the last
    packet's arrival, and the bytes of both directions between sending and reception. The time is null if it
    would be negative.
    """
    (receiver,) = set(SENDERS.values()) - {sender}
    address = next(n.interfaces[0].address for n in run.plan.nodes if n.name == sender)
    there, here = (pl.read_parquet(run.captures[point]).sort("t_ns") for point in (sender, receiver))
    out = (pl.col("src") == address) & (pl.col("payload_bytes") > 0)
    left = there.filter(out).select(left_ns="t_ns")
    came = here.filter(out).select(came_ns="t_ns")
    carried = there.select("t_ns", total=pl.col("wire_bytes").cast(pl.Int64).cum_sum())
    calm = calm.sort("sent_ns").join_asof(left, left_on="sent_ns", right_on="left_ns", strategy="forward")
    calm = calm.join_asof(carried, left_on="sent_ns", right_on="t_ns", strategy="backward").rename(
        {"total": "before"}
    )
    calm = calm.sort("received_ns").join_asof(
        came, left_on="received_ns", right_on="came_ns", strategy="backward"
    )
    calm = calm.drop("t_ns").join_asof(carried, left_on="received_ns", right_on="t_ns", strategy="backward")
    wire = pl.col("came_ns") - pl.col("left_ns")
    return calm.with_columns(
        pl.when(wire >= 0).then(wire).alias(WIRE),
        bytes=(pl.col("total") - pl.col("before").fill_null(0)).cast(pl.Float64),
    ).drop("before")


def pauses(study: Study) -> pl.DataFrame:
    """Returns the columns use, pauses, longest_ms, share: number, longest time and share of the hold of the
    garbage collections of a program, as means over programs and runs (longest_ms: the longest of all).
    """
    rows = []
    for cell in study.cells:
        spans, said = cell.run.table("spans"), parameters(cell.run) | cell.levels
        hold = cell.run.manifest.phases.get("hold")
        if spans is None or "use" not in said or not hold:
            continue
        begin_ns, end_ns = hold
        inside = spans.filter(
            (pl.col("what") == "garbage-collection") & pl.col("t_ns").is_between(begin_ns, end_ns)
        )
        programs = spans["endpoint"].n_unique()
        took = inside["duration_ns"]
        share = float(took.sum()) / (end_ns - begin_ns) / programs
        rows.append((use_of(said), inside.height / programs, float(took.max() or 0) * 1e-6, share))  # type: ignore[arg-type]  # of numbers
    schema = {"use": pl.String, "pauses": pl.Float64, "longest_ms": pl.Float64, "share": pl.Float64}
    found = pl.DataFrame(rows, schema=schema, orient="row")
    means = (pl.col("pauses").mean(), pl.col("longest_ms").max(), pl.col("share").mean())
    return found.group_by("use").agg(means).sort("share", "use", descending=[True, False])


def warming(study: Study) -> pl.DataFrame:
    """Returns the columns use, s (since the first request of the warm-up), ms (median time of a request over
    all cells), in bins of STEP_S.
    """
    frames = []
    for cell in study.cells:
        spans, said = cell.run.table("spans"), parameters(cell.run) | cell.levels
        if spans is None or "use" not in said:
            continue
        asked = (pl.col("what") == "warm-up") & pl.col("endpoint").str.ends_with("ask")
        rows = spans.filter(asked).with_columns(
            use=pl.lit(use_of(said)),
            s=((pl.col("t_ns") - pl.col("t_ns").min()) / 1e9 / STEP_S).floor() * STEP_S,
            ms=pl.col("duration_ns") * 1e-6,
        )
        frames.append(rows.select("use", "s", "ms"))
    schema = {"use": pl.String, "s": pl.Float64, "ms": pl.Float64}
    every = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
    return every.group_by("use", "s").agg(pl.col("ms").median()).sort("use", "s")
