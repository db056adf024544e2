"""Compares the agent's sampled values with tshark, field by field, and with libiec61850 in both
directions.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from agent_ethernet import armed, captured, clock_ns, ended, peer, shown
from agent_launcher import Launcher
from agent_roles import SECOND, item, records

RATE, COUNT = 400, 100  # samples/s and number; slow enough for a peer in Python
STREAM = {
    "to": {"group": [1, 12, 205, 4, 0, 1], "appid": 0x4001, "tag": [5, 6]},
    "sv_id": "MU01", "conf_rev": 1, "rate": RATE, "asdus": 1, "interface": "eth0",
}  # fmt: skip
FIELDS = {
    "vlan.id": "5", "vlan.priority": "6", "sv.appid": "0x4001", "sv.reserve1": "0x0000", "sv.noASDU": "1",
    "sv.svID": "MU01", "sv.confRev": "1", "sv.smpSynch": "2", "eth.dst": "01:0c:cd:04:00:01",
}  # fmt: skip


def publisher(**more: Any) -> dict[str, Any]:
    content = {"smp_synch": 2, "dataset": "phsmeas", "signals": 8, "frequency": 50}
    schedule = {"kind": "own", "rates": [{"from_ns": 0, "per_s": RATE}], "seed": 1, "arrivals": "together"}
    flow = {
        "number": 0, "pattern": "stream", "payload": {"kind": "samples", "bytes": 64}, "schedule": schedule,
        "start_ns": 0, "stop_ns": COUNT * SECOND // RATE,
    }  # fmt: skip
    return item("sampled-values", "a", {"publish": {**STREAM, **content, **more}}, flow)


def subscriber(node: str) -> dict[str, Any]:
    spec = {"publish": None, "subscribe": [{**STREAM, "flow": 0, "start_ns": 0}]}
    return item("sampled-values", node, spec, listens=True)


def sine(peak: float, sample: int, part: int) -> int:
    return round(peak * math.sin(2 * math.pi * (sample * 50 / RATE - part / 3)))


def test_tshark_and_libiec61850_read_what_the_publisher_sends(launcher: Launcher, tmp_path: Path) -> None:
    launcher.lab_up(["a", "b"])
    pcap = tmp_path / "sv.pcap"
    tcpdump, taker = captured(launcher, "b", pcap), peer(launcher, "b", "take-sv", "eth0", str(COUNT))
    assert taker.stdout is not None and json.loads(taker.stdout.readline()) == {"ready": True}
    armed(launcher, subscriber("b"), publisher())
    launcher.do("go", t0_ns=clock_ns(launcher) + SECOND // 10)
    time.sleep(0.6)
    totals = launcher.do("finish")["totals"]
    ended(tcpdump)
    heard, _ = taker.communicate(timeout=30)
    assert (totals["sent"], totals["received"], totals["foreign"]) == (COUNT, COUNT, 0)
    for kind in "SR":
        assert [int(row[2]) for row in records(launcher.directory, kind)] == [*range(COUNT)]

    rows = shown(pcap, "sv", [*FIELDS, "sv.smpCnt", "sv.meas_value"], "-o", "sv.decode_data_as_phsmeas:TRUE")
    assert len(rows) == COUNT
    for number, (*fixed, count, values) in enumerate(rows):
        assert dict(zip(FIELDS, fixed, strict=True)) == FIELDS
        wave = [sine(peak, number, part) for peak in (141_421, 1_633_000) for part in range(3)]
        expected = [*wave[:3], 0, *wave[3:], 0]
        assert int(count) == number
        assert [int(value) for value in values.split(",")] == pytest.approx(expected, abs=1)

    # libiec61850 misses frames that arrive while its Python thread starts at the first one; those that it
    # reads must be right.
    messages = [json.loads(line) for line in heard.splitlines()]
    counts = [m["smp_cnt"] for m in messages]
    assert counts == sorted(set(counts)) and counts[-1] == COUNT - 1 and len(counts) > COUNT // 2
    assert {(m["sv_id"], m["conf_rev"]) for m in messages} == {("MU01", 1)}
    # libiec61850 reads qualities as numbers, so values and qualities alternate in its output.
    assert [m["values"][0] for m in messages] == pytest.approx([sine(141_421, n, 0) for n in counts], abs=1)


def test_frames_of_libiec61850_are_taken(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    armed(launcher, subscriber("b"))
    sender = peer(launcher, "a", "send-sv", "eth0", str(COUNT))
    launcher.do(
        "go", t0_ns=clock_ns(launcher) - time.monotonic_ns()
    )  # t0 is the time of the machine's boot, so the agent's smpCnt begins a second when the peer's does
    said, _ = sender.communicate("", timeout=30)
    assert json.loads(said) == {"sent": COUNT}
    assert launcher.do("finish")["totals"]["received"] == COUNT
    numbers = [int(row[2]) for row in records(launcher.directory, "R")]
    assert [number % RATE for number in numbers] == [*range(COUNT)]
    assert numbers == [*range(numbers[0], numbers[0] + COUNT)]
