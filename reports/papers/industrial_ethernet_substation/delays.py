"""Computes the delays of the substations' streams, with and without file transfers."""

from __future__ import annotations

import polars as pl

from reports.metrics.messages import held_messages
from reports.metrics.metric import Metric, Of, count
from reports.roles import scenario
from reports.rundir import Run

ROOM = "industrial_ethernet_substation"

# Streams of figures 3, 5 and 6, by traffic class, and some by sender or receiver.
STREAMS: dict[str, pl.Expr] = {
    "pisa-controller": pl.col("class").is_in(["samples", "tested-samples"])
    & pl.col("receiver").str.contains("^(?:east|west)-"),
    "controller-pisa": pl.col("class").is_in(["commands", "tested-commands"]),
    "ct-protection": (pl.col("class") == "samples") & pl.col("receiver").str.starts_with("protection-"),
    "protection-cb": (pl.col("class") == "trips") & pl.col("sender").str.starts_with("protection-"),
    "ct-busbar": (pl.col("class") == "samples") & (pl.col("receiver") == "busbar-in"),
    "busbar-cb": pl.col("class") == "busbar-trips",
}
ALONE, FTP = "alone", "ftp"
COLUMNS = ("stream", "load", "at", "us")
# ns; messages this close to a file transfer are left out, because the transfer delays them
AROUND_NS = 20_000_000
# Classes of the flat network, where one PISA has files, and the file by which each stream is measured.
TESTED = "tested-"
BESIDE = {"pisa-controller": "tested.files.upload", "controller-pisa": "tested.files.download"}


def delays(run: Run) -> pl.DataFrame | None:
    """Returns the rows of `observed` that were received; None for runs of other papers."""
    rows = observed(run)
    return None if rows is None else rows.drop_nulls("us")


def observed(run: Run) -> pl.DataFrame | None:
    """Returns the columns stream, load, at (s from the hold's first message), us (from actual sending to
    reception; null if a message was not received) of all messages; None for runs of other papers.

    The paper's simulator counts from the creation of a packet, so an agent's wake-up time does not count. The
    load is "ftp" during a file transfer, else "alone"; messages within AROUND_NS before or after a transfer
    are left out. In the flat network only the file of `BESIDE` counts, at its PISA; messages of other PISAs
    during files are left out.
    """
    held = held_messages(run)
    if held is None or run.plan.reference != ROOM:
        return None
    named = pl.coalesce(*(pl.when(which).then(pl.lit(name)) for name, which in STREAMS.items()))
    rows = held.with_columns(stream=named).drop_nulls("stream")
    files = _files(run)
    near = pl.any_horizontal(pl.lit(False), *(_while(span, AROUND_NS) for span in files.values()))
    beside = pl.any_horizontal(pl.lit(False), *(_while(span) for span in files.values()))
    if scenario(run) == "flat":
        own = (_while(files[file]) & (pl.col("stream") == s) for s, file in BESIDE.items() if file in files)
        beside = pl.any_horizontal(pl.lit(False), *own) & pl.col("class").str.starts_with(TESTED)
    return (
        rows.filter(beside | ~near)
        .with_columns(
            load=pl.when(beside).then(pl.lit(FTP)).otherwise(pl.lit(ALONE)),
            at=(pl.col("scheduled_ns") - pl.col("scheduled_ns").min()) / 1e9,
            us=(pl.col("received_ns") - pl.col("sent_ns")) / 1e3,
        )
        .select(*COLUMNS)
    )


def _files(run: Run) -> dict[str, tuple[int, int]]:
    """Returns the time of each file transfer by flow, in Unix ns: from the client's first request to the last
    answer.
    """
    table = run.table("messages")
    if table is None:
        return {}
    files = table.filter(pl.col("class") == FTP).drop_nulls(["sent_ns", "settled_ns"])
    spans = files.group_by("name").agg(begin=pl.col("sent_ns").min(), end=pl.col("settled_ns").max())
    return {name: (begin, end) for name, begin, end in spans.sort("name").iter_rows()}


def _while(span: tuple[int, int], around_ns: int = 0) -> pl.Expr:
    return pl.col("scheduled_ns").is_between(span[0] - around_ns, span[1] + around_ns)


def delay_metrics(run: Run) -> list[Metric]:
    """Returns for each stream and load (the prefix of the name): mean, largest and 99th percentile of the
    delay in us of received messages, and the share of messages that were received in per cent; empty for runs
    of other papers.
    """
    rows = observed(run)
    if rows is None:
        return []
    found: list[Metric] = []
    groups = rows.group_by("stream", "load").agg(
        mean=pl.col("us").mean(), max=pl.col("us").max(), p99=pl.col("us").quantile(0.99),
        n=pl.col("us").count(), received=100 * pl.col("us").count() / pl.len(),
    )  # fmt: skip
    for row in groups.sort("stream", "load").iter_rows(named=True):
        of = Of(traffic_class=row["stream"])
        found += [
            count(f"{row['load']}_delay_{name}", of, row[name], "us", row["n"], name)
            for name in ("mean", "max", "p99")
            if row["n"]
        ]
        share = row["received"]
        found.append(count(f"{row['load']}_received", of, share, "% of messages", row["n"], "share"))
    return found
