"""Accounts for groups of receivers in which each message reaches one member: a group counts as one
receiver.
"""

from __future__ import annotations

import dataclasses

import polars as pl

from capture import expected
from capture.coverage import covered
from capture.records import Records
from contract.plan import Plan

MEMBERS = {"receiver": pl.String, "member": pl.String}


def members(plan: Plan) -> pl.DataFrame:
    """Returns one row for each group of the plan (`receiver`) and endpoint of its members (`member`)."""
    rows = [(group, member) for group, found in plan.shared.items() for member in found]
    return pl.DataFrame(rows, schema=MEMBERS, orient="row")


def of_groups(records: Records, plan: Plan) -> Records:
    """Returns the records with each arrival at a member of a group as an arrival at the group, in the flows
    that the plan sends to the group. Without groups returns the records unchanged.
    """
    if not plan.shared:
        return records
    to = expected.deliveries(plan).select("flow", "receiver").join(members(plan), on="receiver")
    to = to.unique(["flow", "member"], keep="first", maintain_order=True)
    arrived = records.received.join(
        to.rename({"receiver": "group", "member": "receiver"}),
        on=["flow", "receiver"],
        how="left",
        maintain_order="left",
    )
    arrived = arrived.with_columns(receiver=pl.coalesce("group", "receiver")).drop("group")
    return dataclasses.replace(records, received=arrived)


def ready(reachable: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns `reachable` (receiver, from_ns) with one more row for each group: the time of its first member.
    A group whose first member can be reached from the start gets no row.
    """
    known = members(plan).join(reachable.rename({"receiver": "member"}), on="member", how="left")
    first = known.group_by("receiver").agg(
        from_ns=pl.when(~pl.col("from_ns").is_null().any()).then(pl.col("from_ns").min())
    )
    return pl.concat([reachable, first.drop_nulls().select(reachable.columns)])


def covered_by_all(rows: pl.DataFrame, said: pl.DataFrame, sessions: pl.DataFrame, plan: Plan) -> pl.Series:
    """Returns `covered` for each row; for a group, True if it is True for each member, since the records do
    not show which member a lost message was for.
    """
    if not plan.shared:
        return covered(rows, said, sessions)
    single = rows.with_row_index("at").join(members(plan), on="receiver", how="left", maintain_order="left")
    single = single.with_columns(receiver=pl.coalesce("member", "receiver"))
    single = single.with_columns(covered=covered(single, said, sessions))
    return single.group_by("at", maintain_order=True).agg(pl.col("covered").all())["covered"]
