"""Tests a wrong clock and a perturbed schedule of a node in a real lab in virtual time: on which node they
act, when they end, and that they repeat.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from virtual_place import Place

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.virtual.kernel import FAULTS

# The program prints the node's clock read by the vDSO and by a system call (clock_gettime is number 228),
# each minus the time since the start; by how much a sleep of 1 ms ended late; and how long 200 system calls
# took.
PROBE = """\
import ctypes, os, time
libc = ctypes.CDLL(None)
def by_call():
    pair = (ctypes.c_long * 2)()
    libc.syscall(228, 0, ctypes.byref(pair))
    return pair[0] + pair[1] / 1e9
while True:
    began = time.monotonic_ns()
    libc.usleep(1000)
    slept = time.monotonic_ns() - began - 1_000_000
    began = time.monotonic_ns()
    for _ in range(200):
        os.getppid()
    called = time.monotonic_ns() - began
    now, shown = time.monotonic(), time.time()
    told = by_call() - time.monotonic()
    print(f"{now:.3f} {shown - now:.3f} {told:.3f} {slept} {called}", flush=True)
    time.sleep(0.2)
"""
# The program waits by a condition variable (a futex) until a moment of CLOCK_REALTIME 1 s from now, and
# prints how long it waited.
WAIT = """\
import ctypes, time
libc = ctypes.CDLL(None)
while True:
    began = time.monotonic()
    until = time.time() + 1
    moment = (ctypes.c_long * 2)(int(until), int(until % 1 * 1e9))
    lock, condition = (ctypes.c_char * 64)(), (ctypes.c_char * 64)()
    libc.pthread_mutex_lock(lock)
    libc.pthread_cond_timedwait(condition, lock, moment)
    print(f"{began:.3f} {time.monotonic() - began:.3f}", flush=True)
"""
FILE = f"""\
name: wrong
segments: {{lan: {{subnet: 10.8.0.0/24}}}}
nodes:
  off:
    segment: lan
    software:
      probe: {{command: [python3, probe.py], files: {{probe.py: {json.dumps(PROBE)}}}, start: ramp}}
      wait: {{command: [python3, wait.py], files: {{wait.py: {json.dumps(WAIT)}}}, start: ramp}}
      hear: {{mqtt: {{broker: broker, subscribe: [{{topic: "t/#", qos: 1}}]}}}}
  right:
    segment: lan
    software:
      probe: {{command: [python3, probe.py], files: {{probe.py: {json.dumps(PROBE)}}}, start: ramp}}
  broker: {{segment: lan, software: {{b: {{broker: mosquitto}}}}}}
  mouth:
    segment: lan
    software: {{say: {{mqtt: {{broker: broker, publish: {{topic: t/1, qos: 1, rate: 20 /s}}}}}}}}
timeline:
  - {{at: hold + 2 s, clock: off, offset: -3600 s, for: 3 s}}
  - {{at: hold + 7 s, schedule: off, stall: 5 ms, for: 3 s}}
run: {{ramp: 1 s, hold: 12 s, drain: 3 s}}
"""


def rows(run_dir: Path, log: str) -> list[list[float]]:
    """Returns the numbers of each line of a log; the first is the time of CLOCK_MONOTONIC (s)."""
    lines = (run_dir / "raw" / "logs" / f"{log}.log").read_text().splitlines()
    return [[float(word) for word in line.split()] for line in lines if line[:1].isdigit()]


def spans(run_dir: Path) -> tuple[float, float, float]:
    """Returns the lab's time minus CLOCK_MONOTONIC, and the times by CLOCK_MONOTONIC (s) at which the event
    `clock` and the event `schedule` begin.
    """
    lines = (run_dir / "raw" / "events.jsonl").read_text().splitlines()
    events = [one for one in map(json.loads, lines) if one.get("action") in ("clock", "schedule")]
    assert [(one["action"], one["ok"]) for one in events] == [
        ("clock", True), ("clock", True), ("schedule", True), ("schedule", True),
    ]  # fmt: skip
    (ahead,) = {round(row[1], 1) for row in rows(run_dir, "right.probe")}
    return ahead, events[0]["t_ns"] / 1e9 - ahead, events[2]["t_ns"] / 1e9 - ahead


def within(table: Sequence[Sequence[float]], begin: float, end: float) -> list[Sequence[float]]:
    """Returns the rows within a time span, without those near its ends."""
    found = [row for row in table if begin + 0.3 < row[0] < end - 0.3]
    assert found
    return found


needs_faults = pytest.mark.skipif(
    not any(FAULTS in one.path.read_bytes() for one in find_binaries()),
    reason="images/kernel/build.sh faults.lock builds the kernel",
)


@needs_faults
def test_a_clock_and_a_schedule_are_wrong_on_one_node_for_a_while(place: Place) -> None:
    (place.cwd / "wrong.yaml").write_text(FILE)
    ran = place.run(file="wrong.yaml")
    ahead, clock, schedule = spans(ran.run_dir)

    off, right = rows(ran.run_dir, "off.probe"), rows(ran.run_dir, "right.probe")
    wrong = within(off, clock, clock + 3)
    assert all(abs(row[1] - ahead + 3600) < 0.2 and abs(row[2] - ahead + 3600) < 0.2 for row in wrong)
    again = [row for row in off if not clock - 0.3 < row[0] < clock + 3.3]
    assert all(abs(row[1] - ahead) < 0.2 and abs(row[2] - ahead) < 0.2 for row in again)
    waits = within(rows(ran.run_dir, "off.wait"), clock, clock + 2)
    assert all(1 <= row[1] < 1.1 for row in waits), "a wait for a moment is by the node's own clock"

    calm = [row for row in off if row[0] < schedule - 0.3 or row[0] > schedule + 3.3]
    stirred = within(off, schedule, schedule + 3)
    assert max(row[3] for row in calm) < 20_000 and max(row[4] for row in calm) < 3_000_000
    assert max(row[3] for row in stirred) > 500_000, "sleeps end late"
    slow = sorted(row[4] for row in stirred)
    assert slow[len(slow) // 2] > 2_500_000, "threads are set aside between their calls"
    assert max(row[4] for row in right) < 3_000_000 and len({round(row[1], 1) for row in right}) == 1

    assert place.run(file="wrong.yaml").hashes == ran.hashes != {}
