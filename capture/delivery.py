"""Whether MQTT's delivery guarantees held, judged message by message.

QoS 0 promises no duplicate, QoS 1 no loss, QoS 2 neither (MQTT 5, section 4.3). Judged is what was sent and
settled; what the publisher never sent, or was still sending at the end, is counted and left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

RULES = {
    0: "QoS 0: at most once, so no message is delivered twice",
    1: "QoS 1: at least once, so no message is lost",
    2: "QoS 2: exactly once, so no message is lost or delivered twice",
}
SHOWN = 20
SETTLED = ("acked", "sent")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One QoS level; counts are of messages x expected subscribers, unsent and unsettled of messages.

    holds: None where it cannot be judged, `reason` says why. lost and duplicated: all that was found, also
    where the level promises nothing of it. uncovered: of the lost, those on their way when a clean session
    broke, of which MQTT promises nothing. offending: (publisher, seq, subscriber, lost|duplicated) of the
    first violations.
    """

    qos: int
    holds: bool | None
    rule: str
    reason: str
    expected: int
    lost: int
    duplicated: int
    unsent: int = 0
    unsettled: int = 0
    uncovered: int = 0
    offending: tuple[tuple[str, int, str, str], ...] = ()


def verdicts(messages: pl.DataFrame) -> list[Verdict]:
    """One verdict per QoS level present, lowest first; `messages` as messages.parquet.

    The level is the one of the delivery: the lower of publication and subscription, where the table tells
    (`expected_qos`), else the publication's.
    """
    level = pl.coalesce("expected_qos", "qos") if "expected_qos" in messages.columns else pl.col("qos")
    covered = pl.col("covered") if "covered" in messages.columns else pl.lit(True)
    rows = messages.with_columns(level=level, covered=covered)
    return [_verdict(int(qos), rows.filter(pl.col("level") == qos)) for qos in sorted(rows["level"].unique())]


def _verdict(qos: int, rows: pl.DataFrame) -> Verdict:
    sent = pl.col("sent_ns").fill_null(0) > 0
    settled = pl.col("outcome").is_in(SETTLED)
    once = rows.unique(["publisher", "seq"])
    judged = rows.filter(
        sent & pl.col("subscriber").is_not_null() & (settled | pl.col("received_ns").is_not_null())
    )
    missing = judged.filter(pl.col("received_ns").is_null())
    lost, twice = missing.filter("covered"), judged.filter(pl.col("copies") > 1)
    broken = _broken(qos, lost, twice)
    unsent, unsettled = once.filter(~sent).height, once.filter(sent & ~settled).height
    uncovered = missing.height - lost.height
    holds = broken.is_empty() if not judged.is_empty() else None
    return Verdict(
        qos,
        holds,
        RULES.get(qos, f"QoS {qos}"),
        _reason(judged.height, broken, unsent, unsettled, uncovered),
        judged.height,
        missing.height,
        twice.height,
        unsent,
        unsettled,
        uncovered,
        tuple(broken.head(SHOWN).iter_rows()),
    )


def _broken(qos: int, lost: pl.DataFrame, twice: pl.DataFrame) -> pl.DataFrame:
    """The violations of the level's promise: publisher, seq, subscriber, what."""
    parts = [lost.select("publisher", "seq", "subscriber", what=pl.lit("lost")).clear()]
    if qos >= 1:
        parts.append(lost.select("publisher", "seq", "subscriber", what=pl.lit("lost")))
    if qos != 1:
        parts.append(twice.select("publisher", "seq", "subscriber", what=pl.lit("duplicated")))
    return pl.concat(parts)


def _reason(judged: int, broken: pl.DataFrame, unsent: int, unsettled: int, uncovered: int) -> str:
    counted = dict(broken["what"].value_counts().iter_rows())
    says = [f"{number} {what}" for what, number in sorted(counted.items())]
    if not judged:
        says.append("cannot be judged: no message was sent to an expected subscriber and settled")
    elif not says:
        says.append(f"held for all {judged} deliveries")
    notes = (
        (unsent, "scheduled but never sent"),
        (unsettled, "not settled when the run ended"),
        (uncovered, "lost while a clean session broke, which MQTT does not cover"),
    )
    return "; ".join([*says, *(f"{number} {what}" for number, what in notes if number)])
