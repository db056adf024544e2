"""Joins what was sent with what was received: one row a message and expected subscriber."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from capture import rawfile, topics
from capture.coverage import covered
from capture.rawfile import INTEGER, NAME, Raw, Warned

SENT = {
    "kind": "S",
    "publisher": NAME,
    "seq": INTEGER,
    "topic": NAME,
    "qos": INTEGER,
    "scheduled_ns": INTEGER,
    "sent_ns": INTEGER,
    "acked_ns": INTEGER,
    "attempts": INTEGER,
    "outcome": "[a-z]+",
}
RECEIVED = {
    "kind": "R",
    "subscriber": NAME,
    "publisher": NAME,
    "seq": INTEGER,
    "qos": INTEGER,
    "dup": "[01]|true|false",
    "received_ns": INTEGER,
}
CLIENT = {"kind": "C", "client": NAME, "what": "[a-z]+", "t_ns": INTEGER, "detail": NAME}


@dataclass(frozen=True, slots=True)
class Records:
    """The three kinds of lines in raw/messages.csv, as tables."""

    sent: pl.DataFrame
    received: pl.DataFrame
    clients: pl.DataFrame
    warnings: tuple[Warned, ...]


def read(path: Path) -> Records:
    """raw/messages.csv by kind; times of 0 (unknown) become null."""
    raw = rawfile.read(path)
    sent, received, clients = (
        rawfile.fields(Raw(raw.lines.filter(pl.col("line").str.starts_with(kind + ","))), path.name, pattern)
        for kind, pattern in (("S", SENT), ("R", RECEIVED), ("C", CLIENT))
    )
    warnings = (*raw.warnings, *sent.warnings, *received.warnings, *clients.warnings)
    other = raw.lines.filter(~pl.col("line").str.contains("^[SRC],")).height
    if other:
        text = f"{path.name}: {other} lines are of no known kind and were left out."
        warnings += (Warned("reduce-odd-lines", text, "Another version may have written the file."),)
    known = [pl.when(pl.col(c) != 0).then(pl.col(c)).alias(c) for c in ("sent_ns", "acked_ns")]
    return Records(
        sent.lines.drop("kind").with_columns(known),
        received.lines.drop("kind"),
        clients.lines.drop("kind"),
        warnings,
    )


def join(records: Records, plan: dict[str, Any]) -> tuple[pl.DataFrame, tuple[Warned, ...]]:
    """The table messages.parquet, and what does not fit together.

    A subscriber is expected to get a message if the plan subscribes it to the topic and it had done so
    before the message was sent. A message that nobody is expected to get has one row, with subscriber null.
    """
    found = topics.clients(plan)
    everyone = (
        set(records.clients["client"]) | set(records.sent["publisher"]) | set(records.received["subscriber"])
    )
    by_name = topics.named(found, everyone)
    wanted = topics.expected(by_name, records.sent["topic"].unique().to_list())
    arrived = _arrivals(records)
    rows = (
        records.sent.unique(["publisher", "seq"], keep="last", maintain_order=True)
        .join(wanted, on="topic", how="left")
        .join(arrived, on=["subscriber", "publisher", "seq"], how="left")
        .join(_subscribed(records.clients), on="subscriber", how="left")
    )
    rows = _expected_only(rows)
    rows = rows.with_columns(
        pl.col("copies").fill_null(0),
        pl.col("reordered").fill_null(False),
        expected_qos=pl.min_horizontal("qos", "granted"),
        latency_ns=pl.col("received_ns") - pl.col("scheduled_ns"),
        covered=covered(rows, records.clients, by_name),
    ).drop("granted", "subscribed_ns")
    return rows.sort("scheduled_ns", "publisher", "seq", "subscriber"), _misfits(records, wanted, found)


def _arrivals(records: Records) -> pl.DataFrame:
    """First arrival and copies per message and subscriber; reordered within publisher and topic."""
    topic = records.sent.select("publisher", "seq", "topic").unique(["publisher", "seq"])
    first = records.received.group_by("subscriber", "publisher", "seq", maintain_order=True).agg(
        pl.col("received_ns").min(), copies=pl.len().cast(pl.Int64)
    )
    newest = pl.col("seq").cum_max().shift(1).over("subscriber", "publisher", "topic")
    return (
        first.join(topic, on=["publisher", "seq"], how="left", maintain_order="left")
        .sort("received_ns", maintain_order=True)
        .with_columns(reordered=pl.col("seq") < newest)
        .drop("topic")
    )


def _subscribed(clients: pl.DataFrame) -> pl.DataFrame:
    return (
        clients.filter(pl.col("what") == "subscribed")
        .group_by(subscriber="client")
        .agg(subscribed_ns=pl.col("t_ns").min())
    )


def _expected_only(rows: pl.DataFrame) -> pl.DataFrame:
    """Takes back what late subscribers were expected to get, but leaves each message a row."""
    sent_ns = pl.coalesce("sent_ns", "scheduled_ns")
    missed = pl.col("subscribed_ns").is_null() | (sent_ns < pl.col("subscribed_ns"))
    too_late = pl.col("subscriber").is_not_null() & pl.col("received_ns").is_null() & missed
    kept = rows.filter(~too_late)
    alone = rows.filter(too_late).join(kept, on=["publisher", "seq"], how="anti")
    alone = alone.unique(["publisher", "seq"], maintain_order=True)
    nobody = [
        pl.lit(None, rows.schema[name]).alias(name) for name in ("subscriber", "granted", "subscribed_ns")
    ]
    return pl.concat([kept, alone.with_columns(nobody)])


def _misfits(records: Records, wanted: pl.DataFrame, found: tuple[topics.Client, ...]) -> tuple[Warned, ...]:
    """Warnings of deliveries that nothing explains."""
    warnings = []
    sent = records.sent.select("publisher", "seq", "topic")
    orphans = records.received.join(sent, on=["publisher", "seq"], how="anti").height
    if orphans:
        text = f"{orphans} messages were received that nobody is known to have sent; they are left out."
        warnings.append(Warned("reduce-orphans", text, "The run ended early, or another program published."))
    odd = (
        records.received.join(sent, on=["publisher", "seq"])
        .join(wanted, on=["topic", "subscriber"], how="anti")
        .height
    )
    if odd:
        text = f"{odd} messages reached clients that the plan does not subscribe to their topic."
        warnings.append(
            Warned("reduce-unexpected", text, "Look at the broker's access rules and the topics.")
        )
    if groups := topics.shared(found):
        text = f"Shared subscriptions ({', '.join(groups[:3])}): nobody can say who is to get a message."
        warnings.append(Warned("reduce-shared", text, "Deliveries to them are not judged."))
    return tuple(warnings)
