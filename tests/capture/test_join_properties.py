"""Compares the join of records with a model in plain Python: loss, copies, disorder, fan-out, replies,
sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rundirs import flow, guarantee, node, plan, plan_of

from capture import messages, records
from capture.delivery import verdicts

MS = 1_000_000
PATIENCE_NS = 50 * MS
SENDER_PATIENCE_NS = 70 * MS
FOR_EVER = 10**12
RECEIVERS = {"role": {}, "server": {"listens": True}, "program": {"program": True}}
SENDERS = ("p0", "p1", "p2")
OUTCOMES = ("settled", "sent", "unsettled", "unsent")


@dataclass(frozen=True)
class Sent:
    flow: int
    seq: int
    scheduled_ns: int
    outcome: str

    @property
    def sent_ns(self) -> int | None:
        return None if self.outcome == "unsent" else self.scheduled_ns + MS

    @property
    def settled_ns(self) -> int | None:
        return self.scheduled_ns + 5 * MS if self.outcome == "settled" else None


@dataclass(frozen=True)
class Arrived:
    flow: int
    seq: int
    receiver: str
    leg: int
    t_ns: int


@dataclass(frozen=True)
class Run:
    plan: dict[str, Any]
    sent: tuple[Sent, ...]
    arrived: tuple[Arrived, ...]  # in the order of the file
    ready: dict[str, int]
    ended: dict[str, list[int]]

    def lines(self) -> list[str]:
        found = [
            f"S,{s.flow},{s.seq},100,{s.scheduled_ns},{s.sent_ns or 0},{s.settled_ns or 0},1,{s.outcome}"
            for s in self.sent
        ]
        found += [f"R,{a.flow},{a.seq},{a.receiver},{a.leg},{a.t_ns},0" for a in self.arrived]
        found += [f"C,{who},listening,{t_ns}," for who, t_ns in self.ready.items()]
        return found + [f"C,{who},failed,{t_ns}," for who, ends in self.ended.items() for t_ns in ends]

    def of(self, message: Sent, receiver: str, leg: int) -> list[int]:
        """Returns the arrivals of a message, or of its replies (leg 1), which only requests have."""
        if leg and self.plan["flows"][message.flow]["pattern"] != "request":
            return []
        return [a.t_ns for a in self.arrived if (a.flow, a.seq, a.receiver, a.leg) ==
                (message.flow, message.seq, receiver, leg)]  # fmt: skip


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draws up to three flows to sets of receivers; every message may be lost, duplicated, overtaken or
    answered.
    """
    sets = {"some": draw(st.sets(st.sampled_from(sorted(RECEIVERS)))), "all": set(RECEIVERS)}
    flows = [
        flow(
            f"p{number}", (draw(st.sampled_from(sorted(sets))), draw(guarantees)), pattern=draw(patterns),
            deadline_s=draw(st.sampled_from([0, 0.02])), class_=draw(st.sampled_from("ab")),
        )
        for number in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    nodes = [node(name, patience_s=0.05, **more) for name, more in RECEIVERS.items()]
    nodes += [node(name, patience_s=SENDER_PATIENCE_NS / 1e9) for name in SENDERS]
    of = plan(nodes, flows, {name: sorted(who) for name, who in sets.items()})
    count = draw(st.integers(0, 8))
    sent = [
        Sent(number, seq, (seq + 1) * 10 * MS + number, draw(st.sampled_from(OUTCOMES)))
        for number in range(len(flows)) for seq in range(count)
    ]  # fmt: skip
    arrived: list[Arrived] = []
    for message in sent:
        for receiver in sorted(RECEIVERS):
            for leg in draw(legs):
                # all times of arrival differ, so the order of lines in the file decides nothing
                at_ns = message.scheduled_ns + draw(st.integers(1, 40)) * MS + len(arrived) + 10
                arrived.append(Arrived(message.flow, message.seq, receiver, leg, at_ns))
    ready = draw(st.dictionaries(st.sampled_from(sorted(RECEIVERS)), times))
    leaving = st.sampled_from([*sorted(RECEIVERS), *SENDERS])
    ended = draw(st.dictionaries(leaving, st.lists(times, max_size=2)))
    return Run(of, tuple(draw(st.permutations(sent))), tuple(draw(st.permutations(arrived))), ready, ended)


guarantees = st.tuples(st.booleans(), st.booleans(), st.booleans()).map(
    lambda kept: guarantee(str(kept), lossless=kept[0], single=kept[1], ordered=kept[2])
)
patterns = st.sampled_from(["publish", "request"])
legs = st.lists(st.sampled_from([0, 0, 1]), max_size=3)
times = st.integers(0, 130).map(lambda ms: ms * MS + 5)


def modelled(run: Run) -> dict[tuple[int, int, str | None], dict[str, Any]]:
    """Returns the expected rows of messages.parquet, message by message."""
    rows: dict[tuple[int, int, str | None], dict[str, Any]] = {}
    for message in run.sent:
        planned = run.plan["flows"][message.flow]
        wanted = run.plan["receivers"][planned["deliveries"][0]["receivers"]]
        there = [who for who in wanted if expects(run, message, who)]
        for receiver in there or [None]:
            rows[message.flow, message.seq, receiver] = row(run, message, receiver, planned)
    return rows


def expects(run: Run, message: Sent, receiver: str) -> bool:
    if run.of(message, receiver, 0) or run.of(message, receiver, 1) or receiver == "server":
        return True
    if receiver not in run.ready:
        return receiver == "program"
    return (message.sent_ns or message.scheduled_ns) >= run.ready[receiver]


def row(run: Run, message: Sent, receiver: str | None, planned: dict[str, Any]) -> dict[str, Any]:
    if receiver is None:
        return {"copies": 0, "replies": 0, "received_ns": None, "replied_ns": None, "late": None}
    here, back = (sorted(run.of(message, receiver, leg)) for leg in (0, 1))
    until = back if planned["pattern"] == "request" else here
    late = not until or until[0] - message.scheduled_ns > planned["deadline_ns"]
    return {
        "copies": len(here), "received_ns": here[0] if here else None,
        "replies": len(back), "replied_ns": back[0] if back else None,
        "reordered": overtaken(run, message, receiver), "late": late if planned["deadline_ns"] else None,
        "covered": not broke(run, message, receiver, planned),
    }  # fmt: skip


def overtaken(run: Run, message: Sent, receiver: str) -> bool:
    first: dict[int, int] = {}
    for a in run.arrived:
        if (a.flow, a.receiver, a.leg) == (message.flow, receiver, 0):
            first[a.seq] = min(a.t_ns, first.get(a.seq, a.t_ns))
    own = first.get(message.seq)
    return own is not None and any(at < own and seq > message.seq for seq, at in first.items())


def broke(run: Run, message: Sent, receiver: str, planned: dict[str, Any]) -> bool:
    """Returns whether a session that the message depends on broke after it. `failed` counts as a break even
    as the last record. A request also depends on its sender's connection.

    A published message that never settled depends on its sender's session for as long as the session lasts.
    """
    at_ns = max(message.sent_ns or 0, message.settled_ns or 0)
    bound = [(receiver, PATIENCE_NS)]
    if planned["pattern"] == "request":
        bound += [(receiver, SENDER_PATIENCE_NS), (planned["sender"], SENDER_PATIENCE_NS)]
    if planned["pattern"] == "publish" and message.outcome == "unsettled":
        bound.append((planned["sender"], FOR_EVER))
    ends = [(t, patience_ns) for who, patience_ns in bound for t in run.ended.get(who, [])]
    return bool(at_ns) and any(at_ns <= t <= at_ns + patience_ns for t, patience_ns in ends)


def read(run: Run) -> records.Records:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "messages.csv"
        file.write_text("".join(f"{line}\n" for line in run.lines()))
        return records.read(file, len(run.plan["flows"]))


@settings(max_examples=80, deadline=None)
@given(runs())
def test_the_join_is_what_the_model_says(run: Run) -> None:
    table, _ = messages.join(read(run), plan_of(run.plan))
    wanted = modelled(run)
    found = {(r["flow"], r["seq"], r["receiver"]): r for r in table.iter_rows(named=True)}
    assert len(found) == table.height and set(found) == set(wanted)
    for key, fields in wanted.items():
        assert {name: found[key][name] for name in fields} == fields, key


@settings(max_examples=60, deadline=None)
@given(runs())
def test_verdicts_count_what_the_model_counts(run: Run) -> None:
    table, _ = messages.join(read(run), plan_of(run.plan))
    found = {(v.class_, v.guarantee): v for v in verdicts(table, plan_of(run.plan))}
    counted = {
        key: (v.expected, v.lost, v.duplicated, v.disordered, v.unanswered) for key, v in found.items()
    }
    wanted = tallied(run)
    assert counted == {key: tuple(tally[1:]) for key, tally in wanted.items()}
    for key, (kept, judged, lost, twice, disordered, unanswered) in wanted.items():
        broken = (
            # Each class has messages of one pattern only: of requests, the lost ones are among those without
            # a reply.
            (kept["lossless"] and max(lost, unanswered) > found[key].uncovered)
            or (kept["single"] and twice)
            or (kept["ordered"] and disordered)
        )  # fmt: skip
        guaranteed = kept["lossless"] or kept["single"] or kept["ordered"]
        assert found[key].holds == (not broken if judged and guaranteed else None)


def tallied(run: Run) -> dict[tuple[str, str], list[Any]]:
    """Returns the guarantee and the judged, lost, duplicated, reordered and unanswered messages, by class and
    guarantee.
    """
    tallies: dict[tuple[str, str], list[Any]] = {}
    messages_of = {(s.flow, s.seq): s for s in run.sent}
    for (number, seq, receiver), fields in modelled(run).items():
        planned, message = run.plan["flows"][number], messages_of[number, seq]
        kept = planned["deliveries"][0]["guarantee"]
        tally = tallies.setdefault((planned["traffic_class"], kept["name"]), [kept, 0, 0, 0, 0, 0])
        here = fields["received_ns"] is not None or fields["replied_ns"] is not None
        let_go = kept["while_session"] and not fields.get("covered", True)
        done = message.outcome in ("settled", "sent") or not kept["lossless"]
        if receiver is None or not (here or ((done or let_go) and message.outcome != "unsent")):
            continue
        unanswered = planned["pattern"] == "request" and (not here or (done and fields["replied_ns"] is None))
        tally[1] += 1
        tally[2] += not here
        tally[5] += unanswered
        tally[3] += fields["copies"] > 1 or fields["replies"] > 1
        tally[4] += fields["reordered"]
    return tallies
