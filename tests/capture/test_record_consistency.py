"""Tests that records which contradict each other or the plan make a run suspect, with their class, number and
first example.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rundirs import T0, S, flow, guarantee, node, plan, received, run_dir

from capture.reduce import reduce_run

MS = 1_000_000
SCHEDULE = {"kind": "own", "rates": [{"from_ns": 0, "per_s": 1.0}], "seed": 1}
NODES = [node("a"), node("b", listens=True), node("c", listens=True)]
FLOWS = [
    flow("a", ("b", guarantee()), name="a.tell", class_="tell", pattern="push") | {"schedule": SCHEDULE},
    flow("a", ("b", guarantee()), name="a.ask", class_="ask", pattern="request") | {"schedule": SCHEDULE},
    flow("a", ("both", guarantee()), name="a.all", class_="all", pattern="push") | {"schedule": SCHEDULE},
]
TO = {"b": ["b"], "both": ["b", "c"]}
MANIFEST = {
    "state": "complete", "warnings": [], "time": "virtual", "t0_ns": T0,
    "phases": {"ramp": [T0, T0], "hold": [T0, T0 + 10 * S], "drain": [T0 + 10 * S, T0 + 12 * S]},
}  # fmt: skip


def said(seq: int = 1, of: int = 0, **other: Any) -> str:
    """Returns an S record of message `seq`, due `seq` seconds after the start and sent 1 ms later."""
    at = T0 + seq * S
    fields = {"bytes": 100, "scheduled": at, "sent": at + MS, "settled": 0, "attempts": 1, "outcome": "sent"}
    return ",".join(map(str, ("S", of, seq, *(fields | other).values()))) + "\n"


def reduced(
    path: Path, lines: list[str], links: list[Any] | None = None, **more: Any
) -> list[dict[str, Any]]:
    """Returns the warnings about records of a run with these records."""
    run = run_dir(path / "run", plan(NODES, FLOWS, TO) | {"links": links or []} | more.pop("plan", {}))
    (run / "manifest.json").write_text(json.dumps(MANIFEST | more))
    (run / "raw" / "messages.csv").write_text("".join(lines))
    reduce_run(run)
    found = json.loads((run / "manifest.json").read_text())["warnings"]
    codes = ("trust-records", "trust-unrecorded", "reduce-orphans")
    return [warning for warning in found if warning["code"] in codes]


def test_records_that_agree_say_nothing(tmp_path: Path) -> None:
    asked = {"sent": T0 + S, "settled": T0 + S + 9 * MS, "outcome": "settled"}
    lines = [
        said(), received(0, 1, "b", 1.002),
        said(2, sent=0, attempts=0, outcome="unsent"),
        said(1, 1, **asked), received(1, 1, "b", 1.004), received(1, 1, "b", 1.009, leg=1),
        said(1, 2, sent=T0 + S + 50 * MS), received(2, 1, "b", 1.01), received(2, 1, "c", 1.06),
        said(2, 2, sent=0, attempts=0, outcome="unsent"), received(2, 2, "b", 2.1),  # c refused it
        said(3), received(0, 3, "b", 3.1), received(0, 3, "b", 3.2, copy=1),  # GOOSE and MQTT mark a copy
    ]  # fmt: skip
    assert reduced(tmp_path, lines) == []


LATER = T0 + S + 80 * MS
SETTLED = {"settled": T0 + S + 5 * MS, "outcome": "settled"}
WRONG = {
    "were sent before they were due": [said(sent=T0 + S - 1)],
    "were settled before they were sent": [said(settled=T0 + S, outcome="settled")],
    "have no time of sending": [said(sent=0)],
    "are `settled` without a time": [said(outcome="settled")],
    "have a time of sending": [said(outcome="unsent")],
    "have another size than the plan's": [said(bytes=100_000)],
    "were due outside of their flow's time": [said(101)],
    "were sent or settled after the run": [said(sent=T0 + 3600 * S)],
    "have more than one S record": [said(), said()],
    "were due before the message of the number before": [said(1), said(2, scheduled=T0, sent=T0 + MS)],
    "were received before they were sent": [said(sent=LATER), received(0, 1, "b", 1.0)],
    "were answered before they were sent": [
        said(1, 1, sent=LATER, settled=LATER, outcome="settled"), received(1, 1, "b", 1.01, leg=1),
    ],
    "were answered before they were received": [
        said(1, 1, **SETTLED), received(1, 1, "b", 1.2), received(1, 1, "b", 1.004, leg=1),
    ],
    "were received after the run": [said(), received(0, 1, "b", 3600)],
    "are settled requests that have no reply": [said(1, 1, **SETTLED), received(1, 1, "b", 1.004)],
    "were received more often than they were sent": [said(), *[received(0, 1, "b", 1.1)] * 2],
    "were received that no sender was due to send": [said(), received(0, 100_001, "b", 1.1)],
    "were received by all, although their sender records them as never sent": [
        said(1, 2, sent=0, attempts=0, outcome="unsent"), received(2, 1, "b", 1.1), received(2, 1, "c", 1.1),
    ],
}  # fmt: skip


def test_a_sender_that_lost_its_core_stamps_late(tmp_path: Path) -> None:
    """Shows that a late time stamp is no contradiction if the sender had no CPU time: a role reads the clock
    after the call that sends.
    """
    late = said(sent=T0 + S + 7 * MS)
    assert reduced(tmp_path / "slice", [late, received(0, 1, "b", 1.005)], time="virtual") == []
    (one,) = reduced(tmp_path / "more", [late, received(0, 1, "b", 1.003)], time="virtual")
    assert "were received before they were sent" in one["text"]


@pytest.mark.parametrize("what", WRONG)
def test_each_contradiction_is_named_with_class_number_and_example(tmp_path: Path, what: str) -> None:
    lines = WRONG[what]
    found = reduced(tmp_path, lines)
    (one,) = [warning for warning in found if what in warning["text"]]
    of = int(lines[0].split(",")[1])
    name, class_ = FLOWS[of]["name"], FLOWS[of]["traffic_class"]
    assert one["suspect"] and f"({class_}: " in one["text"]
    assert f"the first is message {lines[-1].split(',')[2]} of {name}" in one["text"]


def test_a_link_that_duplicates_or_flips_bits_explains_arrivals(tmp_path: Path) -> None:
    def link(**asked: float) -> dict[str, Any]:
        return {"forward": {"impairment": asked}, "reverse": {"impairment": {}}}

    twice = [said(), *[received(0, 1, "b", 1.1)] * 2]
    assert reduced(tmp_path / "duplicates", twice, [link(duplicate=0.1)]) == []
    event = {"action": "impair", "targets": ["l"], "args": {"forward": {"duplicate": 0.1}, "reverse": None}}
    assert reduced(tmp_path / "event", twice, plan={"events": [event]}) == []
    (one,) = reduced(tmp_path / "flips", [said(), received(0, 7, "b", 1.1)], [link(corrupt=0.1)])
    assert not one["suspect"]


def test_records_that_went_with_a_stopped_node_are_a_note(tmp_path: Path) -> None:
    event = {"action": "kill", "targets": ["a"], "args": {"software": None}}
    (one,) = reduced(tmp_path, [said(), received(0, 2, "b", 2.1)], plan={"events": [event]})
    assert (one["code"], one["suspect"]) == ("reduce-orphans", False)


def test_a_send_without_a_record_a_refused_record_and_a_missing_one_are_told_apart(tmp_path: Path) -> None:
    lines = [
        said(1),
        "D,0,2,5,missing\n",
        "D,0,6,6,refused\n",
        received(0, 3, "b", 3.1),
        received(0, 6, "b", 6.1),
    ]
    (one,) = reduced(tmp_path, lines)
    assert (one["code"], one["suspect"]) == ("trust-unrecorded", True)
    assert one["text"] == (
        "tell: 5 of 6 messages that were due have no S record that can be: 1 were received, so were sent "
        "without a record; 1 have a record that was refused; 3 have no record at all; the first is message 2 "
        "of a.tell"
    )


@pytest.mark.parametrize(("drain_s", "blamed"), [(2, False), (30, True)])
def test_a_drain_that_was_too_short_is_named_before_the_program(
    tmp_path: Path, drain_s: int, blamed: bool
) -> None:
    """Shows that a drain that ended too early is named as the cause, not the program, which had no time to
    write.
    """
    (one,) = reduced(tmp_path, [said(1), "D,0,2,5,missing\n"], plan={"drain_ns": drain_s * S})
    assert one["remedy"].startswith("correct the program") == blamed
    assert ("write a longer `run.drain`" in one["remedy"]) != blamed


def test_a_debt_that_a_later_life_of_the_agent_did_not_know_of_is_none(tmp_path: Path) -> None:
    assert reduced(tmp_path, [said(1), said(2), "D,0,1,2,missing\n"]) == []
