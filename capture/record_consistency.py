"""Checks that a run's records of messages agree with each other and with the plan, in order, number and time.

Any writer of records may be wrong, including the agent's roles. The agent rejects impossible records of a
user's program as far as it sees them (docs/accounting.md); this module finds contradictions that only the
records of both ends together show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from capture import clocks
from capture.records import Records
from contract.manifest import COMPLETE, TRUST, Manifest, Warned
from contract.plan import Flow, Plan

SECOND = 1_000_000_000
STAMPED_NS = {"real": 20_000_000, "virtual": 100_000}  # largest error of a scheduled time
# A role reads the clock after the transport has taken a message. In between, Linux may give the sender's core
# to other programs for some time slices (kernel/sched/fair.c: 3 ms and more each); the modelled core, for
# one.
PREEMPTED_NS = {"real": 20_000_000, "virtual": 3_000_000}
COLLECTED_NS = 10 * SECOND  # time after the drain in which the last records are written
MOST_NAMED = 3  # classes in one warning
MESSAGE = ("flow", "seq")
DELIVERY = (*MESSAGE, "receiver")
NEVER = ("unsent", "dropped")
USED = (
    *DELIVERY, "class", "pattern", "scheduled_ns", "sent_ns", "attempts", "outcome", "received_ns", "copies",
    "replied_ns", "replies",
)  # fmt: skip
REMEDY = "figures made of these records are wrong: correct the program that wrote them (docs/accounting.md)"
AWAY = "The run ended early, or its timeline stopped their senders, whose last records went with them."
UNRECORDED = "correct the program (docs/accounting.md): a message without an S record is in no figure"
CUT = (
    "the drain took all of its length, so the program may have been at work still: write a longer "
    "`run.drain`, or " + UNRECORDED
)


@dataclass(frozen=True, slots=True)
class Found:
    """Records that contradict each other. `what` completes the warning's sentence "messages ..."; `example`
    names the columns whose values the warning shows.
    """

    what: str
    rows: pl.DataFrame  # has flow, seq and the columns that `example` names
    example: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """The input of the checks: records, joined messages, the plan's flows, and times.

    begin_ns: the scenario's start. end_ns: 10 s after its last phase; both None if unknown. stamped_ns:
    the error that a due time may have. preempted_ns: the time by which a time of sending may be late.
    corrupts, duplicates: True if an impairment of the plan corrupts or duplicates packets. cut: True if
    the drain took all of its length.
    """

    records: Records
    table: pl.DataFrame
    flows: pl.DataFrame
    begin_ns: int | None
    end_ns: int | None
    stamped_ns: int
    preempted_ns: int
    corrupts: bool
    duplicates: bool
    cut: bool = False


def check(records: Records, table: pl.DataFrame, plan: Plan, manifest: Manifest) -> list[Warned]:
    """Returns a warning for each kind of contradiction, with classes, numbers and the first example, and
    warnings of missing records.

    The warnings make the run suspect, with two exceptions: contradictions of arrivals if a link flips bits,
    and records that were lost with a stopped sender.
    """
    run = _run(records, table, plan, manifest)
    sent = records.sent.join(run.flows, on="flow", how="left").sort(MESSAGE, maintain_order=True)
    unsent = _unsent(run)
    found = [*_sent(run, sent), *_delivered(run), *_repeated(run), *_orphans(unsent)]
    # A flipped bit changes the number of a message into that of another, so arrivals with flipped bits prove
    # no contradiction.
    spoilt = {"there"} if run.corrupts else set()
    named = [(f, key) for key, f in found if f.rows.height]
    return [
        Warned(f"{TRUST}records", _text(f, run.flows), REMEDY, suspect=key not in spoilt) for f, key in named
    ] + [*_lost_records(unsent), *_unrecorded(run)]


def _run(records: Records, table: pl.DataFrame, plan: Plan, manifest: Manifest) -> Run:
    phases = manifest.phases
    t0_ns = manifest.t0_ns or min((begin for begin, _ in phases.values()), default=None)
    end_ns = max((end for _, end in phases.values()), default=None)
    asked = [one for _, _, one in plan.impairments()]
    drain_begin, drain_end = phases.get("drain", (0, 0))
    known = clocks.known_ns(table, plan, manifest) if manifest.hosts else pl.lit(0)
    return Run(
        records,
        table.with_columns(known_ns=known).select(*USED, "known_ns"),
        _flows(plan, manifest),
        t0_ns,
        None if end_ns is None else end_ns + COLLECTED_NS,
        STAMPED_NS["virtual" if manifest.virtual else "real"],
        PREEMPTED_NS["virtual" if manifest.virtual else "real"],
        corrupts=any(one.corrupt for one in asked),
        duplicates=any(one.duplicate for one in asked),
        cut=bool(plan.drain_ns) and drain_end - drain_begin >= plan.drain_ns,
    )


def _flows(plan: Plan, manifest: Manifest) -> pl.DataFrame:
    """Returns one row for each flow, by number; `away` marks flows whose sender's last records may be lost,
    because its node ended during the run or the run did not complete.
    """
    away = _away(plan, manifest)
    rows = [
        (
            number, flow.name, flow.traffic_class, flow.pattern, *flow.payload.bounds,
            flow.start_ns, flow.stop_ns, flow.schedule is not None,
            1 if flow.spread == "round-robin" else _receivers(flow, plan), flow.sender in away,
        )
        for number, flow in enumerate(plan.flows)
    ]  # fmt: skip
    schema = {
        "flow": pl.UInt32, "flow_name": pl.String, "class": pl.String, "pattern": pl.String,
        "plan_bytes": pl.Int64, "most_bytes": pl.Int64, "start_ns": pl.Int64, "stop_ns": pl.Int64,
        "scheduled": pl.Boolean, "receivers": pl.Int64, "away": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _receivers(flow: Flow, plan: Plan) -> int:
    return len({name for one in flow.deliveries for name in plan.receivers[one.receivers]})


def _away(plan: Plan, manifest: Manifest) -> set[str]:
    """Returns the endpoints whose last records may be lost: the endpoints of nodes that failed or that the
    timeline stops; all endpoints if the run did not complete.
    """
    ended = {"stop", "kill", "restart"}
    nodes = {target for event in plan.events if event.action in ended for target in event.targets}
    nodes |= {n for n, state in manifest.nodes.items() if state.startswith("failed")}
    every = manifest.state not in ("", COMPLETE)
    return {session.endpoint for node, _, session in plan.sessions() if every or node.name in nodes}


def _sent(run: Run, sent: pl.DataFrame) -> Iterator[tuple[str, Found]]:
    """Yields contradictions in the senders' own records, each with the key "here"; a kind without
    contradictions has no rows. `sent` is sorted by flow and number.
    """
    before = pl.col("flow") == pl.col("flow").shift(1)
    left, settled = pl.col("sent_ns"), pl.col("settled_ns")
    outcome = pl.col("outcome")
    kinds = {
        "were sent before they were due": (left < pl.col("scheduled_ns"), ("scheduled_ns", "sent_ns")),
        "were settled before they were sent": (settled < left, ("sent_ns", "settled_ns")),
        "are `sent` or `settled` and have no time of sending": (
            outcome.is_in(("sent", "settled")) & left.is_null(), (),
        ),
        "are `settled` without a time": ((outcome == "settled") & settled.is_null(), ()),
        "are `unsettled` and say when they were settled": (
            (outcome == "unsettled") & settled.is_not_null()
            & ((pl.col("receivers") <= 1) | (pl.col("pattern") == "publish")), ("settled_ns",),
        ),
        "are `unsent` or `dropped` and have a time of sending": (
            outcome.is_in(NEVER) & left.is_not_null() & (pl.col("receivers") <= 1), ("sent_ns",),
        ),
        "have another size than the plan's": (
            ~pl.col("bytes").is_between("plan_bytes", "most_bytes") & left.is_not_null(),
            ("bytes", "plan_bytes"),
        ),
        "were due outside of their flow's time": (_out_of_flow(run), ("scheduled_ns",)),
        "were sent or settled after the run": (
            pl.max_horizontal(left, settled) > pl.lit(run.end_ns), ("sent_ns", "settled_ns"),
        ),
        "have more than one S record": (before & (pl.col("seq") == pl.col("seq").shift(1)), ()),
        "were due before the message of the number before": (
            before & (pl.col("scheduled_ns") < pl.col("scheduled_ns").shift(1) - run.stamped_ns),
            ("scheduled_ns",),
        ),
    }  # fmt: skip
    for what, (wrong, example) in kinds.items():
        yield "here", Found(what, sent.filter(wrong.fill_null(value=False)), example)


def _out_of_flow(run: Run) -> pl.Expr:
    """Returns an expression that is true for messages that are due before their flow begins or after it ends,
    by more than `run.stamped_ns`, because the times of VM nodes are corrected to the lab's clock. The
    expression is null if the run does not record its beginning.
    """
    at = pl.col("scheduled_ns") - pl.lit(run.begin_ns, pl.Int64)
    begin, end = pl.col("start_ns") - run.stamped_ns, pl.col("stop_ns") + run.stamped_ns
    return ~at.is_between(begin, end, closed="left")


def _delivered(run: Run) -> Iterator[tuple[str, Found]]:
    """Yields contradictions between the records of both ends, each with the key "there"; a kind without
    contradictions has no rows.

    If a message has several receivers, `sent_ns` is the time when the last of them took it, so earlier
    arrivals are not a contradiction.
    """
    rows = run.table.join(run.flows.select("flow", "receivers", "scheduled"), on="flow", how="left")
    one = pl.col("receivers") <= 1
    there, back, left = pl.col("received_ns"), pl.col("replied_ns"), pl.col("sent_ns")
    preempted, late = pl.lit(run.preempted_ns), pl.col("known_ns") + run.preempted_ns
    never = left.is_null() & pl.col("outcome").is_in(NEVER)
    last = pl.max_horizontal(there, back)
    kinds = {
        "were received before they were sent": (one & (there < left - late), ("sent_ns", "received_ns")),
        "were answered before they were sent": (one & (back < left - preempted), ("sent_ns", "replied_ns")),
        "were answered before they were received": (back < there - late, ("received_ns", "replied_ns")),
        "were received after the run": (last > pl.lit(run.end_ns), ("received_ns", "replied_ns")),
        "are settled requests that have no reply": (
            (pl.col("pattern") == "request") & (pl.col("outcome") == "settled") & back.is_null(), (),
        ),
    }  # fmt: skip
    here = (there.is_not_null() | back.is_not_null()).all().over(MESSAGE)
    what = "were received by all, although their sender records them as never sent"
    yield "there", Found(what, rows.filter(never).filter(here), ("received_ns",))
    for what, (wrong, example) in kinds.items():
        yield "there", Found(what, rows.filter(wrong.fill_null(value=False)), example)


def _repeated(run: Run) -> Iterator[tuple[str, Found]]:
    """Yields messages with more recorded arrivals or replies than attempts to send, not counting those marked
    as repetitions; yields nothing if a link duplicates frames. Leaves out published messages, which
    brokers may repeat.
    """
    if run.duplicates:
        return
    often = pl.max_horizontal("copies", "replies") > pl.col("attempts")
    rows = run.table.filter((pl.col("pattern") != "publish") & often & (pl.col("attempts") > 0))
    plain = run.records.received.filter(pl.col("copy") == "0").join(rows, on=DELIVERY, how="semi")
    counted = plain.group_by(*DELIVERY, "leg").agg(arrivals=pl.len().cast(pl.Int64))
    most = counted.group_by(DELIVERY).agg(pl.col("arrivals").max())
    wrong = rows.join(most, on=DELIVERY, how="inner", maintain_order="left")
    what = "were received more often than they were sent, and no link duplicates"
    yield (
        "there",
        Found(what, wrong.filter(pl.col("arrivals") > pl.col("attempts")), ("attempts", "arrivals")),
    )


def _orphans(unsent: pl.DataFrame) -> Iterator[tuple[str, Found]]:
    """Yields arrivals of messages without any record of their sender, although the sender was running."""
    rows = unsent.filter(~pl.col("away"))
    yield "there", Found("were received that no sender was due to send", rows, ("received_ns",))


def _unsent(run: Run) -> pl.DataFrame:
    """Returns one row for each message that arrived although neither a send record (S) nor a debt record (D)
    exists.
    """
    odd = run.records.received.join(run.records.sent, on=MESSAGE, how="anti")
    odd = odd.join(_debts(run.records), on=MESSAGE, how="anti").unique(MESSAGE, maintain_order=True)
    return odd.join(run.flows, on="flow", how="left")


def _lost_records(unsent: pl.DataFrame) -> Iterator[Warned]:
    """Yields a note on messages whose stopped sender lost their records: no figure counts them, and the run
    is not suspect.
    """
    if count := unsent.filter("away").height:
        text = f"{count} messages were received without a record of their sending; they are left out."
        yield Warned("reduce-orphans", text, AWAY)


def _debts(records: Records) -> pl.DataFrame:
    """Returns the messages that an agent lists as due without a valid S record: flow, seq, state."""
    spans = records.debts.with_columns(seq=pl.int_ranges("from_seq", pl.col("to_seq") + 1))
    rows = (
        spans.select("flow", "seq", "state").explode("seq").unique(MESSAGE, keep="last", maintain_order=True)
    )
    return rows.join(records.sent, on=MESSAGE, how="anti")


def _unrecorded(run: Run) -> Iterator[Warned]:
    """Yields a warning for each class with due messages that have no valid S record; the warning makes the
    run suspect. The record was refused, or the message arrived without one, or there is no record at all.
    """
    debts = _debts(run.records)
    if debts.is_empty():
        return
    came = run.records.received.select(MESSAGE).unique()
    arrived = debts.filter(pl.col("state") == "missing").join(came, on=MESSAGE, how="semi")
    debts = debts.join(arrived.with_columns(came=True).select(*MESSAGE, "came"), on=MESSAGE, how="left")
    due = pl.concat([run.records.sent.select("flow"), debts.select("flow")]).group_by("flow").len("due")
    missing = pl.col("state") == "missing"
    per_flow = debts.group_by("flow", maintain_order=True).agg(
        first=pl.col("seq").min(),
        unrecorded=pl.len(),
        refused=(~missing).sum(),
        sent=pl.col("came").is_not_null().sum(),
        missing=(missing & pl.col("came").is_null()).sum(),
    )
    rows = per_flow.join(due, on="flow").join(run.flows, on="flow", how="left")
    of = rows.group_by("class", maintain_order=True).agg(
        pl.col("unrecorded", "refused", "sent", "missing", "due").sum(), pl.col("flow_name", "first").first()
    )
    for row in of.iter_rows(named=True):
        remedy = CUT if run.cut and row["missing"] + row["sent"] else UNRECORDED
        yield Warned(f"{TRUST}unrecorded", _owed(row), remedy, suspect=True)


def _owed(row: dict[str, Any]) -> str:
    kinds = {
        "sent": "were received, so were sent without a record",
        "refused": "have a record that was refused",
        "missing": "have no record at all",
    }
    parts = [f"{row[kind]} {text}" for kind, text in kinds.items() if row[kind]]
    return (
        f"{row['class']}: {row['unrecorded']} of {row['due']} messages that were due have no S record that "
        f"can be: {'; '.join(parts)}; the first is message {row['first']} of {row['flow_name']}"
    )


def _text(found: Found, flows: pl.DataFrame) -> str:
    rows = found.rows
    of = rows.group_by("class", maintain_order=True).len().rows()
    named = ", ".join(f"{name}: {count}" for name, count in of[:MOST_NAMED])
    more = f" and {len(of) - MOST_NAMED} more classes" if len(of) > MOST_NAMED else ""
    first = rows.row(0, named=True)
    name = flows.filter(pl.col("flow") == first["flow"])["flow_name"].item()
    values = _values(first, found.example)
    return f"messages {found.what} ({named}{more}); the first is message {first['seq']} of {name}{values}"


def _values(first: dict[str, Any], example: Iterable[str]) -> str:
    said = [f"{column} {first[column]}" for column in example if first[column] is not None]
    return f": {', '.join(said)}" if said else ""
