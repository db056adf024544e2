"""Judges delivery guarantees message by message: finds lost, unanswered, duplicated and disordered messages.

It judges messages that were sent and settled, any that arrived, and those that were sent and whose session
broke, if the guarantee ends with the session. It counts, but does not judge, messages that the sender never
sent or was still sending at the end. If a guarantee allows loss, it judges all sent messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from capture import expected
from contract.plan import Plan

SHOWN = 20
SETTLED = ("settled", "sent")
OWED = ("class", "guarantee", *expected.KEPT)
MESSAGE = ("flow", "seq")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one delivery guarantee of one class of traffic.

    Counts are of judged messages x expected receivers, guaranteed or not; `unsent` and `unsettled` count
    messages. holds: None if no message was judged or nothing is guaranteed. expected: all judged messages.
    lost: messages that were neither received nor answered. unanswered: requests without a reply, including
    lost requests. uncovered: messages that were lost or unanswered because a session broke while they were
    in flight, if the guarantee ends with the session. late: messages that missed their deadline, including
    messages without a judgement. guaranteed: False if the guarantee forbids nothing. offending: (name of
    the flow, seq, receiver, lost|unanswered|duplicated|disordered) of the first 20 violations.
    """

    class_: str
    guarantee: str
    holds: bool | None
    rule: str
    reason: str
    expected: int
    lost: int
    duplicated: int
    disordered: int = 0
    unsent: int = 0
    unsettled: int = 0
    uncovered: int = 0
    late: int = 0
    unanswered: int = 0
    guaranteed: bool = True
    offending: tuple[tuple[str, int, str, str], ...] = ()


def verdicts(messages: pl.DataFrame, plan: Plan) -> list[Verdict]:
    """Returns one verdict for each class and guarantee, in the order of the plan, from the table
    messages.parquet. A message without expected receiver counts with the first guarantee of its flow; a flow
    without guarantees is left out.
    """
    rows = messages.drop("guarantee").join(
        expected.owed(plan), on=["flow", "receiver"], how="inner", nulls_equal=True
    )
    order = rows.group_by(OWED).agg(pl.col("flow").min(), pl.col("rule").first()).sort("flow", *OWED)
    return [_verdict(which, _of(rows, which)) for which in order.iter_rows(named=True)]


def _of(rows: pl.DataFrame, which: dict[str, Any]) -> pl.DataFrame:
    return rows.filter(pl.all_horizontal(pl.col(column) == which[column] for column in OWED))


def _verdict(which: dict[str, Any], rows: pl.DataFrame) -> Verdict:
    sent = pl.col("sent_ns").fill_null(0) > 0
    settled = pl.col("outcome").is_in(SETTLED) | ~pl.lit(which["lossless"])
    here = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()
    let_go = ~pl.col("covered") & pl.lit(which["while_session"])
    judged = rows.filter(pl.col("receiver").is_not_null() & ((sent & (settled | let_go)) | here))
    unanswered = (pl.col("pattern") == "request") & pl.col("replied_ns").is_null() & settled
    missing = judged.filter(~here | unanswered)
    asked = pl.col("pattern") == "request"
    owed = missing.filter(~let_go)
    found = {
        "lost": owed.filter(~asked),
        "unanswered": owed.filter(asked),
        "duplicated": judged.filter((pl.col("copies") > 1) | (pl.col("replies") > 1)),
        "disordered": judged.filter("reordered"),
    }
    broken = _broken(which, found)
    once = rows.unique(MESSAGE)
    counts = {
        "unsent": once.filter(~sent).height,
        "unsettled": once.filter(sent & ~pl.col("outcome").is_in(SETTLED)).height,
        "uncovered": missing.height - owed.height,
    }
    permitted = 0 if which["lossless"] else missing.height - counts["uncovered"]
    return Verdict(
        class_=which["class"],
        guarantee=which["guarantee"],
        holds=broken.is_empty() if judged.height and _guaranteed(which) else None,
        guaranteed=_guaranteed(which),
        rule=which["rule"],
        reason=_reason(judged.height, broken, _guaranteed(which), counts, permitted),
        expected=judged.height,
        lost=missing.filter(~here).height,
        unanswered=missing.filter(asked).height,
        duplicated=found["duplicated"].height,
        disordered=found["disordered"].height,
        late=rows.filter(pl.col("late").fill_null(False)).height,
        offending=tuple(broken.head(SHOWN).iter_rows()),
        **counts,
    )


def _guaranteed(which: dict[str, Any]) -> bool:
    return bool(which["lossless"] or which["single"] or which["ordered"])


def _broken(which: dict[str, Any], found: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Returns the violations of the properties that the guarantee has: flow (its name), seq, receiver, what
    (a key of `found`).
    """
    against = {
        "lost": which["lossless"],
        "unanswered": which["lossless"],
        "duplicated": which["single"],
        "disordered": which["ordered"],
    }
    return pl.concat(
        table.select(flow="name", seq="seq", receiver="receiver", what=pl.lit(what)).head(
            table.height if against[what] else 0
        )
        for what, table in found.items()
    )


def _reason(
    judged: int, broken: pl.DataFrame, guaranteed: bool, counts: dict[str, int], permitted: int
) -> str:
    violations = dict(broken["what"].value_counts().iter_rows())
    says = [f"{number} {what}" for what, number in sorted(violations.items())]
    if judged == 0:
        says.append("cannot tell: no message was sent to an expected receiver and settled")
    elif not guaranteed:
        says.append(f"nothing is guaranteed for {judged} deliveries: they are counted")
    elif not says:
        says.append(f"holds for all {judged - counts['uncovered']} deliveries")
    if permitted and guaranteed:
        says.append(f"{permitted} lost or unanswered, which it permits")
    notes = (
        ("unsent", "scheduled but never sent"),
        ("unsettled", "not settled when the run ended"),
        ("uncovered", "lost or unanswered while a session broke, of which nothing is guaranteed"),
    )
    return "; ".join([*says, *(f"{counts[name]} {text}" for name, text in notes if counts[name])])
