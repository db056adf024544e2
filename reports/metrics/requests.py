"""Computes the figures of requests in captures: HTTP/1, Redis, PostgreSQL in the clear, from any program.
A request's time is that between the packets in which it and its answer end, at the capture point.

The answers of these protocols come in the order of the requests, so the n-th answer of a connection belongs
to its n-th request. A connection in which that cannot be (its beginning or a part was not captured, a server
pushes) is left out whole, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from contract.metrics import PERCENTILES
from reports.expect import bootstrap
from reports.metrics.metric import Metric, Of, count, metric
from reports.roles import SECOND, Span, phases
from reports.rundir import Run


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a protocol, by their types in the table of packets.

    requests: those of the client that an answer ends; None: all of them. answers: those of the server that
    end a request; None: all but `others`. uncounted: requests that have an answer and are no figure. errors:
    those of the server that make the present request's answer an error.
    """

    requests: tuple[str, ...] | None
    answers: tuple[str, ...] | None
    others: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


PROTOCOLS: Mapping[str, Messages] = {
    "http": Messages(None, None, others=("100", "102", "103")),
    "redis": Messages(None, None, others=("PUSH",), errors=("ERROR",)),
    "postgresql": Messages(
        ("QUERY", "SYNC", "FUNCTION_CALL", "STARTUP"), ("READY",), uncounted=("STARTUP",), errors=("ERROR",)
    ),
}
LOST = "UNKNOWN"  # the dissector has lost the position in the stream
STATUSES = ("2", "3", "4", "5")
METHOD = "request to answer at the capture point"


def request_metrics(run: Run) -> list[Metric]:
    """Returns number, rate, statuses and times of the requests of the hold, by capture point and protocol;
    protocols without a request are left out.
    """
    span = phases(run).get("hold")
    return [
        one
        for point, path in run.captures.items()
        if (connections := run.connections.get(point)) is not None
        for protocol in PROTOCOLS
        for one in _of_protocol(Of(capture=point, protocol=protocol), path, connections, span)
    ]


def _of_protocol(of: Of, path: Path, connections: pl.DataFrame, span: Span | None) -> list[Metric]:
    assert of.protocol is not None
    if of.protocol not in connections.get_column("app"):
        return []
    if "stream" not in pl.read_parquet_schema(path):  # a table that another program or version wrote
        return []
    found, left_out = requests(pl.scan_parquet(path), connections, of.protocol)
    if span is not None:
        found = found.filter(pl.col("asked_ns").is_between(span.start_ns, span.end_ns, closed="left"))
    n = found.height
    if not n and not left_out:
        return []
    answered = found.filter(pl.col("answered_ns").is_not_null())
    counts = {
        "requests": n,
        "unanswered": n - answered.height,
        **_statuses(of.protocol, answered),
        "unfollowed": left_out,
    }
    made = [
        count(f"app_{name}", of, value, "connections" if name == "unfollowed" else "requests", n, "count")
        for name, value in counts.items()
    ]
    if span is not None and n:
        seconds = (span.end_ns - span.start_ns) / SECOND
        made.append(count("app_rate", of, n / seconds, "requests/s", n, "requests over the hold"))
    return made + _latency(of, answered)


def _statuses(protocol: str, answered: pl.DataFrame) -> dict[str, int]:
    if protocol == "http":
        status = answered.get_column("status")
        return {f"status_{digit}xx": int(status.str.starts_with(digit).sum()) for digit in STATUSES}
    return {"errors": int(answered.get_column("error").sum())}


def _latency(of: Of, answered: pl.DataFrame) -> list[Metric]:
    """Returns mean, percentiles and largest of the times, in ms, with the intervals of a block bootstrap."""
    if not answered.height:
        return []
    rows = answered.sort("asked_ns")
    times = (rows.get_column("answered_ns") - rows.get_column("asked_ns")).to_numpy() / 1e6
    values = np.asarray(times, dtype=np.float64)
    made = [
        metric(f"app_latency_{name}", of, "ms", bootstrap.interval(values, share))
        for name, share in {"mean": None, **PERCENTILES}.items()
    ]
    return [*made, count("app_latency_max", of, float(values.max()), "ms", len(values), METHOD)]


def requests(packets: pl.LazyFrame, connections: pl.DataFrame, protocol: str) -> tuple[pl.DataFrame, int]:
    """Returns the requests of a protocol in the order in which they end, and the number of connections that
    are left out.

    packets, connections: the tables of a capture point (docs/contracts/packets.md). Columns of the requests:
    stream, asked_ns, answered_ns (null without an answer), kind (type of the request), status (type of the
    answer, null without one), error (bool: the answer has an error).
    """
    said = PROTOCOLS[protocol]
    begun = connections.filter(pl.col("app") == protocol)
    openers = begun.lazy().select(
        "stream", opener="src", opener_port="src_port", whole=pl.col("syn_synack_ns").is_not_null()
    )
    messages = (
        packets.filter((pl.col("app") == protocol) & pl.col("app_types").is_not_null())
        .select("t_ns", "stream", "src", "src_port", "app_types")
        .with_row_index("place")
        .join(openers, on="stream", how="inner", maintain_order="left")
        .select(
            "place",
            "t_ns",
            "stream",
            client=(pl.col("src") == pl.col("opener")) & (pl.col("src_port") == pl.col("opener_port")),
            whole="whole",
            kind=pl.col("app_types"),
        )
        .explode("kind")
        .collect()
    )
    lost = messages.filter((pl.col("kind") == LOST) | ~pl.col("whole"))
    asked = _numbered(messages.filter(pl.col("client") & _is(said.requests)))
    of_server = messages.filter(~pl.col("client") & ~pl.col("kind").is_in(said.others))
    ends = of_server.with_columns(number=_is(said.answers).cast(pl.Int64).cum_sum().over("stream"))
    answers = ends.filter(_is(said.answers))
    wrong = _errors(ends, said)
    both = asked.join(answers, on=("stream", "number"), how="full", coalesce=True, suffix="_answer")
    unlike = both.filter(pl.col("place").is_null() | (pl.col("place_answer") < pl.col("place")))
    bad = pl.concat([lost.select("stream"), unlike.select("stream")]).unique()
    kept = (
        both.join(bad, on="stream", how="anti")
        .join(wrong, on=("stream", "number"), how="left")
        .filter(~pl.col("kind").is_in(said.uncounted))
    )
    rows = kept.select(
        "stream",
        asked_ns="t_ns",
        answered_ns="t_ns_answer",
        kind="kind",
        status="kind_answer",
        error=pl.col("error").fill_null(False),
    )
    return rows.sort("asked_ns", "stream", maintain_order=True), bad.height


def _is(kinds: tuple[str, ...] | None) -> pl.Expr:
    return pl.col("kind").is_not_null() if kinds is None else pl.col("kind").is_in(kinds)


def _numbered(messages: pl.DataFrame) -> pl.DataFrame:
    """Returns the messages with their number in the connection, from 1 on."""
    return messages.with_columns(number=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("stream"))


def _errors(ends: pl.DataFrame, said: Messages) -> pl.DataFrame:
    """Returns stream and number of each request whose answer has an error: the answer itself, or a message
    before it.
    """
    own = said.answers is None  # the error is the answer, with its own number
    number = pl.col("number") if own else pl.col("number") + 1
    found = ends.filter(pl.col("kind").is_in(said.errors)).select("stream", number=number)
    return found.unique().with_columns(error=pl.lit(True))
