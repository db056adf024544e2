"""Makes tables of a plan's flows, of the expected receivers with their delivery guarantees, and of
sessions.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from contract.plan import Delivery, Flow, Plan

FLOWS = {
    "flow": pl.UInt32,
    "name": pl.String,
    "class": pl.String,
    "pattern": pl.String,
    "sender": pl.String,
    "deadline_ns": pl.Int64,
}
KEPT = ("lossless", "single", "ordered", "while_session")  # properties of a guarantee
DELIVERIES = {
    "flow": pl.UInt32,
    "receiver": pl.String,
    "turn": pl.Int64,
    "turns": pl.Int64,
    "guarantee": pl.String,
    "rule": pl.String,
} | dict.fromkeys(KEPT, pl.Boolean)
SESSIONS = {"endpoint": pl.String, "patience_ns": pl.Int64, "bound": pl.Boolean, "waits": pl.Boolean}


def flows(plan: Plan) -> pl.DataFrame:
    """Returns one row for each flow, by number; deadline_ns is null for a flow without a deadline."""
    rows = [
        (
            number, flow.name, flow.traffic_class, flow.pattern, flow.sender,
            flow.deadline_ns or None,
        )
        for number, flow in enumerate(plan.flows)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=FLOWS, orient="row")


def deliveries(plan: Plan) -> pl.DataFrame:
    """Returns one row for each flow and expected receiver, with its delivery guarantee; the first one if the
    flow names a receiver more than once.

    With round-robin, the receiver expects messages with seq % turns == turn; else both columns are null and
    it expects all.
    """
    rows = [
        (number, receiver, *_turn(flow, turn, len(receivers)), *_guaranteed(delivery))
        for number, flow in enumerate(plan.flows)
        for delivery in flow.deliveries
        for receivers in [plan.receivers[delivery.receivers]]
        for turn, receiver in enumerate(receivers)
    ]
    table = pl.DataFrame(rows, schema=DELIVERIES, orient="row")
    return table.unique(["flow", "receiver"], keep="first", maintain_order=True)


def owed(plan: Plan) -> pl.DataFrame:
    """Returns the rows of `deliveries`, and after them for each flow one row with receiver null and the
    flow's first guarantee, for messages without expected receiver. A flow without deliveries has no such row.
    """
    rows = [
        (number, None, None, None, *_guaranteed(flow.deliveries[0]))
        for number, flow in enumerate(plan.flows)
        if flow.deliveries
    ]
    return pl.concat([deliveries(plan), pl.DataFrame(rows, schema=DELIVERIES, orient="row")])


def _turn(flow: Flow, turn: int, turns: int) -> tuple[int | None, int | None]:
    return (turn, turns) if flow.spread == "round-robin" else (None, None)


def its_turn() -> pl.Expr:
    """Returns an expression that is true if a row's receiver is expected to receive message `seq`: always, or
    with round-robin if it is the receiver's turn.
    """
    return pl.col("turns").is_null() | (pl.col("seq") % pl.col("turns") == pl.col("turn"))


def _guaranteed(delivery: Delivery) -> tuple[Any, ...]:
    guarantee = delivery.guarantee
    return (guarantee.name, guarantee.rule, *(getattr(guarantee, what) for what in KEPT))


def sessions(plan: Plan) -> pl.DataFrame:
    """Returns one row for each session; patience_ns is null if the session outlives connections.

    `bound` marks agent roles that listen from the start, `waits` all other agent roles, which must connect
    and record that they are ready. A session of a program has neither mark.
    """
    rows = [
        (
            session.endpoint, session.patience_ns,
            session.listens and not software.process,
            not session.listens and not software.process,
        )
        for _, software, session in plan.sessions()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SESSIONS, orient="row")
