"""Compares the agent's GOOSE messages with tshark, field by field, and with libiec61850 in both
directions.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_ethernet import armed, captured, clock_ns, ended, peer, shown
from agent_launcher import Launcher
from agent_roles import SECOND, item, records

MS = 10**6
STREAM = {
    "to": {"group": [1, 12, 205, 1, 0, 1], "appid": 1, "tag": [5, 6]},
    "gocb_ref": "IED1/LLN0$GO$trip", "conf_rev": 1, "interface": "eth0",
}  # fmt: skip
CONTENT = {
    "dat_set": "IED1/LLN0$trip", "go_id": "trip", "entries": 2, "retransmit_ns": [10 * MS, 10 * MS, 20 * MS],
    "stable_ns": 400 * MS, "time_allowed_to_live_ms": 0,
}  # fmt: skip
FIELDS = {
    "vlan.id": "5", "vlan.priority": "6", "goose.appid": "0x0001", "eth.dst": "01:0c:cd:01:00:01",
    "goose.gocbRef": "IED1/LLN0$GO$trip", "goose.datSet": "IED1/LLN0$trip", "goose.goID": "trip",
    "goose.confRev": "1", "goose.ndsCom": "0", "goose.numDatSetEntries": "4", "goose.simulation": "0",
}  # fmt: skip
EVENTS = 5


def publisher() -> dict[str, Any]:
    """Returns a workload item that publishes EVENTS events, one every 100 ms from 100 ms on."""
    schedule = {"kind": "own", "rates": [{"from_ns": 0, "per_s": 10}], "seed": 1, "arrivals": "together"}
    flow = {
        "number": 0, "pattern": "push", "payload": {"kind": "dataset", "bytes": 16}, "schedule": schedule,
        "start_ns": 100 * MS, "stop_ns": (100 * EVENTS + 50) * MS,
    }  # fmt: skip
    return item("goose", "a", {"publish": {**STREAM, **CONTENT}}, flow)


def subscriber(node: str) -> dict[str, Any]:
    spec = {"publish": None, "subscribe": [{**STREAM, "flow": 0, "publisher": "a"}]}
    return item("goose", node, spec, listens=True)


def test_tshark_and_libiec61850_read_what_the_publisher_sends(launcher: Launcher, tmp_path: Path) -> None:
    launcher.lab_up(["a", "b"])
    pcap = tmp_path / "goose.pcap"
    tcpdump, taker = captured(launcher, "b", pcap), peer(launcher, "b", "take-goose", "eth0", "24")
    assert taker.stdout is not None and json.loads(taker.stdout.readline()) == {"ready": True}
    armed(launcher, subscriber("b"), publisher())
    t0_ns = clock_ns(launcher) + SECOND // 10
    launcher.do("go", t0_ns=t0_ns)
    time.sleep(1.0)
    totals = launcher.do("finish")["totals"]
    ended(tcpdump)
    heard, _ = taker.communicate(timeout=30)
    assert (totals["scheduled"], totals["sent"], totals["pending"]) == (EVENTS, EVENTS, 0)
    assert [row[2:] for row in records(launcher.directory, "S")] == [
        [str(seq), "16", *row[4:7], "4", "sent"] for seq, row in enumerate(records(launcher.directory, "S"))
    ]
    got = [(int(row[2]), row[6]) for row in records(launcher.directory, "R")]
    firsts = [seq for seq, copy in got if copy == "0"]
    assert firsts == [*range(EVENTS)], "each event's first copy, once"
    assert all(got.count((seq, "1")) == 3 for seq in range(EVENTS - 1)), got

    numbers = ["goose.stNum", "goose.sqNum", "goose.timeAllowedtoLive", "goose.boolean", "goose.t"]
    rows = shown(pcap, "goose", [*FIELDS, *numbers])
    assert all(dict(zip(FIELDS, row, strict=False)) == FIELDS for row in rows)
    state = [(int(row[-5]), int(row[-4])) for row in rows]
    # At the start sqNum is 1; then each event has a first message and three copies.
    assert state[:4] == [(1, 1), (1, 2), (1, 3), (1, 4)]
    of_events = [(seq + 2, copy) for seq in range(EVENTS) for copy in range(4)]
    assert state[4:] == [*of_events, *((EVENTS + 1, 4 + n) for n in range(len(state) - 4 - len(of_events)))]
    lives = {0: "20", 1: "20", 2: "40", 3: "800"}
    for row, (st_num, sq_num) in zip(rows[4:], state[4:], strict=True):
        assert row[-3] == lives.get(sq_num, "800")
        assert row[-2] == ("1,1" if st_num % 2 == 0 else "0,0")
        # UtcTime has a fraction of 24 bits, a resolution of 60 ns.
        changed = datetime.strptime(row[-1][:28], "%b %d, %Y %H:%M:%S.%f").replace(tzinfo=UTC)
        assert abs(changed.timestamp() - (t0_ns / SECOND + 0.1 * (st_num - 1))) < 2e-6

    messages = [json.loads(line) for line in heard.splitlines()]
    seen = [(m["st_num"], m["sq_num"]) for m in messages]
    assert seen == sorted(set(seen)) and set(seen) <= set(state) and len(seen) > len(state) // 2
    for m in messages:
        fixed = (m["conf_rev"], m["go_id"], m["data_set"], m["is_valid"], m["needs_commissioning"])
        assert fixed == (1, "trip", "IED1/LLN0$trip", True, False)
        assert m["values"] == [m["st_num"] % 2 == 0, 0] * 2


def test_events_of_libiec61850_are_taken(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    armed(launcher, subscriber("b"))
    launcher.do("go", t0_ns=clock_ns(launcher))
    said, _ = peer(launcher, "a", "send-goose", "eth0", "20").communicate(timeout=30)
    assert json.loads(said) == {"sent": 20}
    time.sleep(0.4)
    launcher.do("finish")
    got = [(int(row[2]), row[6]) for row in records(launcher.directory, "R")]
    # libiec61850 begins with stNum 1 and raises it before the first event, whose sqNum is 0.
    assert got == [(seq, copy) for seq in range(20) for copy in ("0", "1", "1")]
    connections = [row[2] for row in records(launcher.directory, "C") if row[5:] == ["a"]]
    assert connections == ["connected", "disconnected"], "300 ms without a message"
