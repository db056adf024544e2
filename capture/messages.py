"""Joins sent messages with arrivals: one row for each message and expected receiver."""

from __future__ import annotations

import polars as pl

from capture import absences, expected, shared
from capture.records import BACK, THERE, Records
from contract.manifest import Warned
from contract.plan import Plan
from contract.tables import TABLES

MESSAGE = ("flow", "seq")
DELIVERY = ("flow", "seq", "receiver")
NEVER = 2**63 - 1
READY = ("subscribed", "listening")  # records that show that an endpoint can be reached


def join(records: Records, plan: Plan) -> tuple[pl.DataFrame, tuple[Warned, ...]]:
    """Returns the table messages.parquet and warnings. One warning is of arrivals where the plan does not
    expect them, which are in no row. Another is of replies in flows without requests, which do not count.

    A receiver is expected to get a message if the plan states it. If the receiver must connect first, it must
    also have been ready when the message was sent, or have received it all the same. A message without an
    expected receiver has one row, with receiver null. If a message has several S records, the last one
    counts. A group of receivers counts as one (`shared.of_groups` has put its name into the records).
    """
    wanted = expected.deliveries(plan).select("flow", "receiver", "guarantee", "turn", "turns")
    sessions = expected.sessions(plan)
    rows = (
        records.sent.unique(MESSAGE, keep="last", maintain_order=True)
        .join(wanted, on="flow", how="left")
        .filter(expected.its_turn())
        .join(_arrivals(records.received), on=DELIVERY, how="left")
        .join(_replies(records.received, plan), on=DELIVERY, how="left")
    )
    rows = _expected_only(rows, shared.ready(_reachable(records.sessions, sessions), plan))
    rows = absences.expected_only(rows, records.sessions)
    rows = rows.join(expected.flows(plan), on="flow", how="left")
    rows = rows.with_columns(
        pl.col("copies").fill_null(0),
        pl.col("replies").fill_null(0),
        pl.col("reordered").fill_null(False),
        latency_ns=pl.col("received_ns") - pl.col("scheduled_ns"),
        round_trip_ns=pl.col("replied_ns") - pl.col("scheduled_ns"),
        covered=shared.covered_by_all(rows, records.sessions, sessions, plan),
    )
    rows = rows.with_columns(late=_late()).select(TABLES["messages"].names)
    return rows.sort("scheduled_ns", "flow", "seq", "receiver"), _misfits(records, wanted, plan)


def spans(said: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the table spans.parquet from records of kind P: the actions of programs, when each began, and
    how long it took.
    """
    of_flows = expected.flows(plan).select("flow", "name", "class")
    return (
        said.join(of_flows, on="flow", how="left")
        .select(TABLES["spans"].names)
        .sort("t_ns", maintain_order=True)
    )


def _arrivals(received: pl.DataFrame) -> pl.DataFrame:
    """Returns for each message and receiver the first arrival, the number of arrivals (copies), and True in
    `reordered` if a later message of the flow arrived there before it.
    """
    newest = pl.col("seq").cum_max().shift(1).over("receiver", "flow")
    return (
        received.filter(pl.col("leg") == THERE)
        .group_by(DELIVERY, maintain_order=True)
        .agg(pl.col("received_ns").min(), copies=pl.len().cast(pl.Int64))
        .sort("received_ns", maintain_order=True)
        .with_columns(reordered=pl.col("seq") < newest)
    )


def _requests(plan: Plan) -> list[int]:
    return [number for number, flow in enumerate(plan.flows) if flow.pattern == "request"]


def _replies(received: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the first reply and the number of replies of each request and receiver."""
    return (
        received.filter((pl.col("leg") == BACK) & pl.col("flow").is_in(_requests(plan)))
        .group_by(DELIVERY)
        .agg(replied_ns=pl.col("received_ns").min(), replies=pl.len().cast(pl.Int64))
    )


def _late() -> pl.Expr:
    """Returns an expression that is true if a message, or the reply of a request, arrived after its deadline
    or never; null without a deadline or an expected receiver.
    """
    there = pl.when(pl.col("pattern") == "request").then("replied_ns").otherwise("received_ns")
    missed = there.is_null() | (there - pl.col("scheduled_ns") > pl.col("deadline_ns"))
    return pl.when(pl.col("deadline_ns").is_not_null() & pl.col("receiver").is_not_null()).then(missed)


def _reachable(said: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Returns the time from which each receiver can be reached: receiver, from_ns. Receivers that can be
    reached from the start have no row.

    An agent role that does not listen is ready when it records that; without such a record it is never ready.
    A program is ready when it records that; a program without such a record is ready from the start.
    """
    ready = said.filter(pl.col("what").is_in(READY)).group_by("endpoint").agg(from_ns=pl.col("t_ns").min())
    return (
        sessions.join(ready, on="endpoint", how="full", coalesce=True)
        .filter(~pl.col("bound").fill_null(False))
        .with_columns(from_ns=pl.coalesce("from_ns", pl.when("waits").then(pl.lit(NEVER))))
        .select(receiver="endpoint", from_ns="from_ns")
        .drop_nulls()
    )


def _expected_only(rows: pl.DataFrame, reachable: pl.DataFrame) -> pl.DataFrame:
    """Removes the rows of receivers that were not ready when the message was sent, unless the message arrived
    or was answered. A message that loses all its rows keeps one, with receiver null.
    """
    early = pl.coalesce("sent_ns", "scheduled_ns") < pl.col("from_ns")
    nothing = pl.col("received_ns").is_null() & pl.col("replied_ns").is_null()
    rows = (
        rows.join(reachable, on="receiver", how="left")
        .with_columns(too_early=(early & nothing).fill_null(False))
        .drop("from_ns")
    )
    kept, gone = rows.filter(~pl.col("too_early")), rows.filter("too_early")
    alone = gone.join(kept, on=MESSAGE, how="anti").unique(MESSAGE, keep="first", maintain_order=True)
    alone = alone.with_columns(receiver=pl.lit(None, pl.String))
    return pl.concat([kept, alone]).drop("too_early")


def _misfits(records: Records, wanted: pl.DataFrame, plan: Plan) -> tuple[Warned, ...]:
    """Returns a warning of messages that arrived at endpoints where the plan does not expect them, and one of
    replies in flows without requests.
    """
    warnings = []
    known = records.received.join(wanted, on=["flow", "receiver"], how="left")
    if odd := known.filter(pl.col("guarantee").is_null() | ~expected.its_turn()).height:
        text = f"{odd} messages reached endpoints that the plan does not expect them at; they are left out."
        warnings.append(Warned("reduce-unexpected", text, "Look at who subscribes to what, and who sends."))
    answers = records.received.filter(pl.col("leg") == BACK)
    if odd := answers.filter(~pl.col("flow").is_in(_requests(plan))).height:
        text = f"{odd} replies belong to flows without replies; they are left out."
        warnings.append(
            Warned("reduce-replies", text, "Only a flow of pattern `request` has replies (leg 1).")
        )
    return tuple(warnings)
