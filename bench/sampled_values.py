"""Measures sampled values: frames for each second of CPU time against libiec61850, and their lateness against
a plain timer.

vNET accounts for each frame; the peer's loop only encodes and sends.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from commands import ROOT, as_root, left_out

sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agent")]

from agent_launcher import Launcher  # noqa: E402
from agent_roles import SECOND, item, records  # noqa: E402

from orchestrator.lab import namespaces  # noqa: E402

RATE, STREAMS, TURNS = 60_000, 2, 3  # more than a core can send; late frames are sent all the same
REAL_RATE, REAL_SECONDS = 4800, 5
TOGETHER = (
    (4000, 1),
    (4800, 1),
    (14_400, 6),
)  # samples a second and in a frame: 50 Hz, 60 Hz, measurement (9-2LE)
PEER_FRAMES = 100_000
TICKS = os.sysconf("SC_CLK_TCK")
PEER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import pyiec61850.pyiec61850 as iec
p = iec.SVPublisher_create(None, "eth0")
asdu = iec.SVPublisher_addASDU(p, "MU01", None, 1)
for _ in range(8):
    iec.SVPublisher_ASDU_addINT32(asdu), iec.SVPublisher_ASDU_addQuality(asdu)
iec.SVPublisher_setupComplete(p)
begin = time.process_time()
for _ in range(int(sys.argv[2])):
    iec.SVPublisher_publish(p)
    iec.SVPublisher_ASDU_increaseSmpCnt(asdu)
print(time.process_time() - begin)
"""


def publisher(number: int, rate: int, seconds: int, asdus: int = 1) -> dict[str, Any]:
    stream = {
        "to": {"group": [1, 12, 205, 4, 0, 1], "appid": 0x4000, "tag": None}, "sv_id": f"MU{number:02}",
        "conf_rev": 1, "rate": rate, "asdus": asdus, "interface": "eth0", "smp_synch": 2,
        "dataset": "phsmeas", "signals": 8, "frequency": 50,
    }  # fmt: skip
    schedule = {
        "kind": "own",
        "rates": [{"from_ns": 0, "per_s": rate // asdus}],
        "seed": 1,
        "arrivals": "together",
    }
    flow = {
        "number": number, "pattern": "stream", "payload": {"kind": "samples", "bytes": 64 * asdus},
        "schedule": schedule, "start_ns": 0, "stop_ns": seconds * SECOND,
    }  # fmt: skip
    made = item("sampled-values", "a", {"publish": stream}, flow)
    made["software"]["name"] = made["software"]["session"]["endpoint"] = f"mu{number}"
    return made


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def played(launcher: Launcher, items: list[dict[str, Any]], seconds: float) -> list[list[str]]:
    """Plays the items on the launcher's nodes and returns the record of each message's fate."""
    directory = Path(tempfile.mkdtemp(dir=launcher.directory))
    launcher.do("messages", path=str(directory / "messages.csv"))
    launcher.do("workload", items=items)
    offset = launcher.do("hello")["clock_offset_ns"]
    launcher.do("go", t0_ns=offset + time.monotonic_ns() + SECOND // 10)
    time.sleep(seconds + 0.1)
    launcher.do("finish")
    return records(directory, "S")


def ours(launcher: Launcher, pid: int) -> float:
    """Returns vNET's frames for each second of the node's CPU time, when more frames are due than it can
    send.
    """
    before = cpu_s(pid)
    rows = played(launcher, [publisher(n, RATE, 1) for n in range(STREAMS)], 1.0)
    return sum(row[8] == "sent" for row in rows) / (cpu_s(pid) - before)


def theirs(launcher: Launcher) -> float:
    path = next(p for p in sys.path if (Path(p) / "pyiec61850").is_dir())
    argv = ["ip", "netns", "exec", launcher.netns("a"), sys.executable, "-c", PEER, path, str(PEER_FRAMES)]
    return PEER_FRAMES / float(subprocess.check_output(argv, text=True))


def lateness(launcher: Launcher, *streams: tuple[int, int]) -> list[float]:
    """Returns the microseconds from the due time of each frame until the kernel took it, for streams of
    (samples a second, samples in a frame).
    """
    items = [publisher(n, rate, REAL_SECONDS, asdus) for n, (rate, asdus) in enumerate(streams)]
    return [(int(row[5]) - int(row[4])) / 1000 for row in played(launcher, items, REAL_SECONDS + 0.2)]


class Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


def bare() -> list[float]:
    """Returns the lateness in microseconds of a loop that only sleeps until each due time (clock_nanosleep):
    the kernel's part of it.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK, 1 ns
    begin, found = time.monotonic_ns() + SECOND // 10, []
    for number in range(REAL_RATE * REAL_SECONDS):
        due = begin + number * SECOND // REAL_RATE
        at = Timespec(*divmod(due, SECOND))
        libc.clock_nanosleep(time.CLOCK_MONOTONIC, 1, ctypes.byref(at), None)  # TIMER_ABSTIME
        found.append((time.monotonic_ns() - due) / 1000)
    return found


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def rows(launcher: Launcher, pid: int) -> list[dict[str, Any]]:
    pairs = [(ours(launcher, pid), theirs(launcher)) for _ in range(TURNS)]
    mine, peer = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    against = f"libiec61850, {peer:,.0f} frames of its CPU time, none accounted for"
    found = [
        {
            "name": "SV frames of a second of CPU time",
            "value": mine,
            "unit": "frames/s",
            "peer": against,
            "ratio": mine / peer,
        }
    ]
    late, alone = lateness(launcher, (REAL_RATE, 1)), bare()
    period = 1e6 / REAL_RATE
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)):
        value, kernel = quantile(late, share), quantile(alone, share)
        missed, others = (sum(one > period for one in values) / len(values) for values in (late, alone))
        against = (
            f"a timer alone, {kernel:.1f} us (later than a period: {missed:.2%} of ours, {others:.2%} of its)"
        )
        found.append(
            {
                "name": f"SV at {REAL_RATE}/s: late by, {name}",
                "value": value,
                "unit": "us",
                "peer": against,
                "ratio": value / kernel,
            }
        )
    together = lateness(launcher, *TOGETHER)
    missed = sum(one > 1000 for one in together) / len(together)
    names = ", ".join(f"{rate:,}" for rate, _ in TOGETHER)
    found.append(
        {
            "name": f"SV at {names}/s at once: late by, p99",
            "value": quantile(together, 0.99),
            "unit": "us",
            "peer": f"4,800/s alone, {quantile(late, 0.99):.1f} us (more than 1 ms late: {missed:.2%})",
            "ratio": quantile(together, 0.99) / quantile(late, 0.99),
        }
    )
    return found


def main() -> None:
    as_root()
    if importlib.util.find_spec("pyiec61850") is None:
        left_out("pyiec61850-ng has wheels for x86-64 only")
    with tempfile.TemporaryDirectory() as directory:
        launcher = Launcher(Path(directory), f"bench{os.getpid()}")
        try:
            pid = launcher.create(["a", "b"])["a"]
            launcher.wire(["a", "b"])
            namespaces.bypass_netfilter(launcher.core)  # every lab does this
            json.dump(rows(launcher, pid), sys.stdout)
        finally:
            launcher.close()


main()
