"""The agent's sampled values against tshark, field by field, and against libiec61850 in both directions."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import Launcher
from agent_roles import SECOND, item, records

PEER = Path(__file__).with_name("iec61850_peer.py")
RATE, COUNT = 400, 100  # slow enough for a peer in Python
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


def armed(launcher: Launcher, *items: dict[str, Any]) -> None:
    launcher.do("messages", path=str(launcher.directory / "messages.csv"))
    launcher.do("workload", items=list(items))


def clock_ns(launcher: Launcher) -> int:
    """The lab's time now."""
    return int(launcher.do("hello")["clock_offset_ns"]) + time.monotonic_ns()


def peer(launcher: Launcher, node: str, *arguments: str) -> subprocess.Popen[str]:
    pytest.importorskip("pyiec61850", reason="its wheel is for x86-64 only")
    argv = ["ip", "netns", "exec", launcher.netns(node), sys.executable, str(PEER), *arguments]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def captured(launcher: Launcher, node: str, path: Path) -> subprocess.Popen[str]:
    """tcpdump, once it listens."""
    argv = [
        "ip",
        "netns",
        "exec",
        launcher.netns(node),
        "tcpdump",
        "-i",
        "eth0",
        "--immediate-mode",
        "-U",
        "-w",
        path,
    ]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "listening on" in process.stderr.readline()
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=20)


def shown(pcap: Path, fields: list[str], *options: str) -> list[list[str]]:
    """The values of fields, a row a frame; none is malformed."""
    asked = [part for field in ["_ws.malformed", *fields] for part in ("-e", field)]
    argv = [
        "tshark",
        "-n",
        "-r",
        str(pcap),
        *options,
        "-Y",
        "sv",
        "-T",
        "fields",
        "-E",
        "separator=;",
        *asked,
    ]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    rows = [line.split(";") for line in said.splitlines()]
    assert {row[0] for row in rows} == {""}
    return [row[1:] for row in rows]


def sine(peak: float, sample: int, part: int) -> int:
    return round(peak * math.sin(2 * math.pi * (sample * 50 / RATE - part / 3)))


def test_tshark_and_libiec61850_read_what_the_publisher_sends(launcher: Launcher, tmp_path: Path) -> None:
    launcher.lab_up(["a", "b"])
    pcap = tmp_path / "sv.pcap"
    tcpdump, taker = captured(launcher, "b", pcap), peer(launcher, "b", "take", "eth0", str(COUNT))
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

    rows = shown(pcap, [*FIELDS, "sv.smpCnt", "sv.meas_value"], "-o", "sv.decode_data_as_phsmeas:TRUE")
    assert len(rows) == COUNT
    for number, (*fixed, count, values) in enumerate(rows):
        assert dict(zip(FIELDS, fixed, strict=True)) == FIELDS
        wave = [sine(peak, number, part) for peak in (141_421, 1_633_000) for part in range(3)]
        expected = [*wave[:3], 0, *wave[3:], 0]
        assert int(count) == number
        assert [int(value) for value in values.split(",")] == pytest.approx(expected, abs=1)

    # It misses what comes while its Python wakes up at the first; what it reads must be right.
    messages = [json.loads(line) for line in heard.splitlines()]
    counts = [m["smp_cnt"] for m in messages]
    assert counts == sorted(set(counts)) and counts[-1] == COUNT - 1 and len(counts) > COUNT // 2
    assert {(m["sv_id"], m["conf_rev"]) for m in messages} == {("MU01", 1)}
    # It reads qualities as numbers too: every second one.
    assert [m["values"][0] for m in messages] == pytest.approx([sine(141_421, n, 0) for n in counts], abs=1)


def test_frames_of_libiec61850_are_taken(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    armed(launcher, subscriber("b"))
    sender = peer(launcher, "a", "send", "eth0", str(COUNT))
    launcher.do(
        "go", t0_ns=clock_ns(launcher) - time.monotonic_ns()
    )  # long ago: the second counts from the machine's own start
    said, _ = sender.communicate("", timeout=30)
    assert json.loads(said) == {"sent": COUNT}
    assert launcher.do("finish")["totals"]["received"] == COUNT
    numbers = [int(row[2]) for row in records(launcher.directory, "R")]
    assert [number % RATE for number in numbers] == [*range(COUNT)]
    assert numbers == [*range(numbers[0], numbers[0] + COUNT)]
