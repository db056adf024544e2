"""Tests interruptions against values computed by hand."""

from __future__ import annotations

import polars as pl
import pytest
from synthetic import run_of
from synthetic_tables import MESSAGES

from capture.reduce import schema
from contract.plan import Expectation
from contract.plan.expectations import Bounds
from reports.expect.values import values
from reports.metrics.interruptions import events, interruption_metrics
from reports.metrics.metric import find

MS, S = 10**6, 10**9
EVERY_NS, WAY_NS = 100 * MS, 8 * MS
T0 = 1_000 * S
MANIFEST = {"phases": {"hold": [T0, T0 + 20 * S]}}


def sent(number: int, there_ns: int | None, pattern: str = "stream", flow: int = 0) -> dict[str, object]:
    at = T0 + number * EVERY_NS
    there = {"replied_ns" if pattern == "request" else "received_ns": there_ns}
    fixed = {"flow": flow, "class": pattern, "pattern": pattern, "receiver": "sink", "copies": 1}
    return {**fixed, "seq": number, "scheduled_ns": at, "sent_ns": at, **there}


def stream(lost: range, pattern: str = "stream", flow: int = 0) -> list[dict[str, object]]:
    return [
        sent(n, None if n in lost else T0 + n * EVERY_NS + WAY_NS, pattern, flow) for n in range(200)
    ]  # fmt: skip


def event(at_ns: int, action: str, label: str = "cut", ok: bool = True) -> dict[str, object]:
    at_ns += T0
    return {"t_ns": at_ns, "planned_ns": at_ns, "action": action, "label": label, "ok": ok, "targets": ["l"]}


def measured(rows: list[dict[str, object]], *happened: dict[str, object]) -> dict[tuple[str, str], float]:
    run = run_of(
        manifest=MANIFEST,
        messages=pl.DataFrame(rows, schema=MESSAGES),
        events=pl.DataFrame(happened, schema=schema("events")),
    )
    found = interruption_metrics(run)
    assert all(find(found, m.name, m.of) is m for m in found)
    return {(m.name, str(m.of.event)): m.value for m in found}


def test_a_stream_that_goes_on_after_three_seconds() -> None:
    # Messages are due every 100 ms and take 8 ms. Those from 40 to 69 are lost; 39 arrives at 3.908 s, 70 at
    # 7.008 s.
    found = measured(stream(range(40, 70)), event(4 * S, "link-down"), event(9 * S, "link-up", "mended"))
    assert found["interruption_lost", "cut"] == 30
    assert found["interruption", "cut"] == pytest.approx(3100)
    assert found["interruption_before", "cut"] == pytest.approx(100)
    assert found["interruption_until", "cut"] == pytest.approx(3.008)
    assert found["interruption_lost", "mended"] == 0
    assert found["interruption", "mended"] == pytest.approx(100)
    assert ("interruption_until", "mended") not in found


def test_what_was_on_its_way_belongs_to_the_event() -> None:
    # Message 40 was sent 4 ms before the second event and would have arrived 4 ms after it.
    found = measured(stream(range(40, 50)), event(2 * S, "impair", "a"), event(4 * S + 4 * MS, "impair", "b"))
    assert (found["interruption_lost", "a"], found["interruption_lost", "b"]) == (0, 10)
    assert ("interruption_until", "a") not in found
    assert found["interruption_until", "b"] == pytest.approx(1.004)


FLAP = (
    (2_205, "link-down", "flap 1"), (3_205, "link-up", "up 1"),
    (4_205, "link-down", "flap 2"), (5_205, "link-up", "up 2"),
)  # fmt: skip


def flaps(rows: list[dict[str, object]]) -> dict[str, float]:
    """Returns the messages lost by event, for flaps of 1 s that begin 5 ms after messages 22 and 42 were
    sent.
    """
    happened = [event(at * MS, action, label) for at, action, label in FLAP]
    return {of: n for (name, of), n in measured(rows, *happened).items() if name == "interruption_lost"}


def backlog(lost: range, late_ns: int = 14 * S) -> list[dict[str, object]]:
    """Returns messages in which those after the losses are late by `late_ns`: more than half of all."""
    rows = stream(lost)
    for row in rows[lost.stop :]:
        row["received_ns"] = int(str(row["received_ns"])) + late_ns
    return rows


@pytest.mark.parametrize(
    ("lost", "first", "second"),
    [
        (range(22, 31), 9, 0),
        (range(22, 33), 11, 0),  # message 32 was sent 5 ms before the link came up
        (range(42, 53), 0, 11),
        (range(42, 60), 0, 11),  # the last seven were sent after the link was up again
        (range(22, 43), 11, 1),
    ],
)
def test_losses_belong_to_the_flap_although_a_backlog_follows(lost: range, first: int, second: int) -> None:
    found = flaps(backlog(lost))
    assert (found["flap 1"], found["flap 2"]) == (first, second)
    assert sum(found.values()) == len(lost)  # each lost message counts once


def test_an_impairment_that_is_over_takes_nothing() -> None:
    # Message 49 was sent 5 ms before the end of the losses and would have arrived 3 ms after it.
    happened = [event(2 * S, "impair", "loses all"), event(4 * S + 905 * MS, "impair", "loses all: over")]
    found = measured(stream(range(20, 50)), *happened)
    assert found["interruption_lost", "loses all"] == 30
    assert found["interruption_lost", "loses all: over"] == 0


def test_the_way_is_that_of_before_any_event_at_its_longest() -> None:
    # Message 10 took 250 ms because of retransmissions. 20 and 21, which were sent up to 205 ms before the
    # event, are lost too.
    rows = stream(range(20, 40))
    rows[10]["received_ns"] = int(str(rows[10]["sent_ns"])) + 250 * MS
    assert flaps(rows)["flap 1"] == 13


def test_a_message_that_waited_at_its_sender_counts_from_its_sending() -> None:
    # The messages are due every 100 ms until 4 s; the lost ones were sent in the second flap, and the first
    # flap lost none.
    rows = stream(range(22, 40))
    for row in rows[22:40]:
        row["sent_ns"] = T0 + 4_300 * MS
    found = flaps(rows)
    assert (found["flap 1"], found["flap 2"]) == (0, 18)


def test_where_nothing_came_before_the_first_event_the_shortest_way_is_taken() -> None:
    rows = stream(range(40))
    for row in rows[41:]:
        row["received_ns"] = int(str(row["received_ns"])) + 14 * S
    assert (flaps(rows)["flap 1"], flaps(rows)["up 1"]) == (11, 7)


def test_a_stream_that_never_goes_on_has_no_end() -> None:
    found = measured(stream(range(150, 200)), event(15 * S, "link-down"))
    assert found["interruption_lost", "cut"] == 50
    assert found["interruption", "cut"] == pytest.approx(20_000 - 14_908)
    assert ("interruption_until", "cut") not in found


def test_the_flow_that_suffers_most_and_the_replies_of_requests() -> None:
    rows = stream(range(40, 42), "request") + stream(range(40, 60), "request", flow=1)
    found = measured(rows, event(4 * S, "link-down"))
    assert found["interruption_lost", "cut"] == found["interruption_unanswered", "cut"] == 22
    assert found["interruption_until", "cut"] == pytest.approx(2.008)


def test_events_of_one_moment_and_label_are_one_and_names_are_told_apart() -> None:
    happened = [event(S, "link-down"), event(S, "link-down"), event(2 * S, "link-down")]
    happened += [event(3 * S, "run", "look"), event(4 * S, "kill", ok=False), event(30 * S, "link-up")]
    run = run_of(manifest=MANIFEST, events=pl.DataFrame(happened, schema=schema("events")))
    assert [(e.label, e.from_ns - T0, e.until_ns - T0) for e in events(run)] == [
        ("cut", S, 2 * S), ("cut (2)", 2 * S, 20 * S)
    ]  # fmt: skip
    assert interruption_metrics(run) == []


def test_without_events_in_the_hold_there_is_nothing() -> None:
    assert measured(stream(range(40, 70)), event(30 * S, "link-down")) == {}


def test_a_request_that_arrived_is_unanswered_and_not_lost() -> None:
    """Shows that a request counts as lost only if it neither arrived nor was answered, as in the counts of
    the whole run.
    """
    rows = stream(range(40, 60), "request")
    arrived = [row | {"received_ns": T0} if row["seq"] in range(40, 53) else row for row in rows]
    found = measured(arrived, event(4 * S, "link-down"))
    assert (found["interruption_lost", "cut"], found["interruption_unanswered", "cut"]) == (7, 20)
    assert ("interruption_unanswered", "cut") not in measured(stream(range(2)), event(4 * S, "link-down"))


def test_the_41st_event_is_measured_when_it_is_asked_for_and_not_counted_to_the_40th() -> None:
    """Events every 100 ms; 50 messages after the last one are lost."""
    happened = [event(S + n * EVERY_NS, "impair", f"e{n + 1}") for n in range(41)]
    run = run_of(
        manifest=MANIFEST,
        messages=pl.DataFrame(stream(range(60, 110)), schema=MESSAGES),
        events=pl.DataFrame(happened, schema=schema("events")),
    )
    first = {(m.of.event, m.name): m.value for m in interruption_metrics(run)}
    assert first["e40", "interruption_lost"] == 0 and ("e41", "interruption_lost") not in first
    asked = {m.name: m.value for m in interruption_metrics(run, "e41")}
    assert asked["interruption_lost"] == 50 and asked["interruption_until"] > 5
    every = {(m.of.event, m.name): m.value for m in interruption_metrics(run, most=None)}
    assert len({event for event, _ in every}) == 41
    one = Expectation("lost", "metric", "interruption_lost", unit="messages", bounds=Bounds(below=1))
    judged = values(run, interruption_metrics(run), one)
    assert not isinstance(judged, str) and max(value.value for value in judged) == 50
