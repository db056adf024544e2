"""Tests that the agent passes a program its flows, and that it checks the records that the program writes."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import Launcher

SECOND = 1_000_000_000
SCHEDULE = {"kind": "own", "rates": [{"from_ns": 0, "per_s": 2.0}], "seed": 1, "arrivals": "together"}
ACCOUNTS = {
    "endpoint": "n",
    "t0_ns": None,
    "sends": [
        {
            "number": 5, "name": "n.prog", "class": "n.prog",
            "to": [{"endpoint": "far", "address": "10.0.0.9"}],
            "pattern": "request", "payload": {"kind": "own", "bytes": 10},
            "reply": {"kind": "own", "bytes": 10},
            "schedule": SCHEDULE, "start_ns": 0, "stop_ns": 2 * SECOND, "deadline_ns": None,
        }
    ],
    "receives": [{"number": 6, "name": "far.prog", "sender": "far"}],
}  # fmt: skip


def program(script: str, **more: Any) -> dict[str, Any]:
    process = {"argv": ["sh", "-c", script], "env": {"WORD": "kept"}, "files": []} | more
    return {"name": "prog", "role": "utility", "process": process, "spec": {"accounts": ACCOUNTS}}


@pytest.fixture
def one(launcher: Launcher) -> Launcher:
    launcher.lab_up(["n"])
    launcher.do("messages", path=str(launcher.directory / "messages.csv"))
    return launcher


def records(one: Launcher) -> list[str]:
    one.do("finish")
    return (one.directory / "messages.csv").read_text().splitlines()


def told(one: Launcher) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((one.directory / "nodes/n/prog.flows.json").read_text())
    return found


def events(one: Launcher, kind: str, count: int) -> list[dict[str, Any]]:
    """Returns the first `count` events of a kind, as soon as they have arrived."""
    while len(found := [event for event in one.events if event.get("event") == kind]) < count:
        one.events.append(json.loads(one.lines.readline()))
    return found


def test_the_file_has_the_times_of_the_schedule_and_t0_once_it_is_known(one: Launcher) -> None:
    script, ready = (
        "echo $WORD $VNET_FLOWS $VNET_RECORDS; sleep 99",
        {"log": "kept", "deadline_ns": 9 * SECOND},
    )
    one.do("start", node="n", software=program(script, ready=ready))
    before = told(one)
    assert before["t0_ns"] is None and before["receives"] == ACCOUNTS["receives"]
    (flow,) = before["sends"]
    assert flow["times_ns"] == [0, SECOND // 2, SECOND, 3 * SECOND // 2]
    now = time.monotonic_ns() + before["clock_offset_ns"]
    assert abs(now - time.time_ns()) < 10 * SECOND
    one.do("go", t0_ns=now)
    assert told(one) == before | {"t0_ns": now}
    home = one.directory / "nodes/n"
    assert stat.S_ISFIFO((home / "prog.records").stat().st_mode)
    said = Path(one.logs / "n.prog.log").read_text()
    assert said == f"kept {home}/prog.flows.json {home}/prog.records\n"


def test_good_lines_pass_in_order_and_those_of_an_account_that_goes_on(one: Launcher) -> None:
    one.do("go", t0_ns=1000)
    began = time.time_ns() + SECOND // 10  # the earliest time at which the program may run
    good = [
        f"C,n,connected,{began},",
        "S,5,0,10,1000,1001,1009,1,settled",
        "R,5,0,far,1,1009,0",
        "R,6,4,n,0,1003,1",
    ]
    script = "sleep 0.3; printf '%s\\n' " + " ".join(f"'{line}'" for line in good) + " > $VNET_RECORDS"
    for count in (1, 2):
        one.do("start", node="n", software=program(script, expect="exited"))
        events(one, "exited", count)
    assert records(one) == [*good, good[0], *good[2:], "D,5,1,3,missing"]
    (event,) = events(one, "records", 1)  # the restarted program records message 0 again
    assert (event["node"], event["software"], event["line"]) == ("n", "prog", 6)
    assert event["text"] == good[1] and event["rule"] == "message 0 of flow 5 has its S record already"


def test_started_again_with_other_flows_it_has_another_account(one: Launcher) -> None:
    one.do("go", t0_ns=1000)
    for count, number in ((1, 5), (2, 9)):
        line = f"S,{number},0,10,1000,1001,1009,1,settled"
        software = program(f"echo {line} > $VNET_RECORDS", expect="exited")
        (sends,) = ACCOUNTS["sends"]
        software["spec"] = {"accounts": ACCOUNTS | {"sends": [sends | {"number": number}]}}
        one.do("start", node="n", software=software)
        events(one, "exited", count)
    assert told(one)["sends"][0]["number"] == 9
    debts = ["D,5,1,3,missing", "D,9,1,3,missing"]
    assert [line for line in records(one) if line.startswith("D")] == debts


def test_what_is_cut_short_too_long_or_no_text_is_refused_and_counted_beyond(one: Launcher) -> None:
    one.do("go", t0_ns=1000)
    script = "{ head -c 5000 /dev/zero | tr '\\0' x; echo; printf '\\377\\n'; yes | head -n 30; "
    script += "printf 'S,5,0,10'; } > $VNET_RECORDS"
    one.do("start", node="n", software=program(script, expect="exited"))
    events(one, "exited", 1)
    assert records(one) == ["D,5,0,3,missing"]
    *lines, beyond = events(one, "records", 25)
    assert [event["line"] for event in lines] == list(range(1, 25))
    assert [event["rule"] for event in lines[:3]] == [
        "is longer than 4095 bytes",
        "is not UTF-8",
        "does not begin with S, R, C or P",
    ]
    assert len(lines[0]["text"]) == 120
    assert beyond["rule"] == "9 more lines are invalid"


def test_a_line_that_breaks_off_is_told(one: Launcher) -> None:
    one.do("go", t0_ns=1000)
    script = "printf 'S,5,0,10' > $VNET_RECORDS"
    one.do("start", node="n", software=program(script, expect="exited"))
    (event,) = events(one, "records", 1)
    assert (event["line"], event["text"]) == (1, "S,5,0,10")
    assert event["rule"] == "is cut short: the program ended within the line"


def test_a_program_that_runs_owes_what_was_due_and_one_that_ended_owes_nothing(one: Launcher) -> None:
    """Shows that messages that are due count as pending only while the program runs; the drain waits for
    pending messages.
    """
    one.do("go", t0_ns=1000)
    line = "S,5,0,10,1000,1001,1009,1,settled"
    script = f"echo {line} > $VNET_RECORDS; echo written; read REST < there; exit 0"
    (one.directory / "nodes/n").mkdir(parents=True, exist_ok=True)
    os.mkfifo(one.directory / "nodes/n/there")
    ready = {"log": "written", "deadline_ns": 9 * SECOND}
    one.do("start", node="n", software=program(script, ready=ready, expect="exited"))
    assert one.do("pending")["pending"] == 3
    with (one.directory / "nodes/n/there").open("w") as go:
        go.write("\n")
    events(one, "exited", 1)
    assert one.do("pending")["pending"] == 0


def test_a_line_that_cannot_be_is_a_debt_of_its_own_until_a_better_one_comes(one: Launcher) -> None:
    one.do("go", t0_ns=1000)
    bad, good = "S,5,0,10,1001,1001,0,1,sent", "S,5,0,10,1000,1001,1009,1,settled"
    later = f"S,5,1,10,{1000 + SECOND // 2},0,0,0,sent"
    script = f"printf '{bad}\\n{good}\\n{later}\\n' > $VNET_RECORDS"
    one.do("start", node="n", software=program(script, expect="exited"))
    events(one, "exited", 1)
    assert records(one) == [good, "D,5,1,1,refused", "D,5,2,3,missing"]
    rules = [event["rule"] for event in events(one, "records", 2)]
    assert rules[0] == "scheduled_ns is not when the message was due, 1000; write t0_ns + times_ns[seq]"
    assert rules[1] == "is sent and has no sent_ns"
