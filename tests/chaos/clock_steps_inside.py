"""Steps and slews the clock of a guest (for test_clock.py), and records which warnings a lab's heartbeat
thread gives for each change. Argument: the file that gets a line of JSON for each change: the change, and the
texts of the warnings.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path

from orchestrator.lab.clock import MILLISECOND, wall_offset_ns
from orchestrator.lab.evidence import WallClock

STEPS_MS = (5, -5, 10, -10, 20, -20, 50, -50)
SLEW_PPM, SLEW_S = 500, 3.0  # 500 ppm is NTP's largest change of the rate; it makes 1.5 ms in 3 s
ADJ_FREQUENCY, ADJ_SETOFFSET, ADJ_NANO = 0x0002, 0x0100, 0x2000
SECOND = 1_000_000_000


class Timex(ctypes.Structure):
    """`struct timex` of 64 bit Linux."""

    _fields_ = [
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long), ("esterror", ctypes.c_long), ("status", ctypes.c_int),
        ("constant", ctypes.c_long), ("precision", ctypes.c_long), ("tolerance", ctypes.c_long),
        ("sec", ctypes.c_long), ("nsec", ctypes.c_long), ("rest", ctypes.c_char * 256),
    ]  # fmt: skip


def adjust(asked: Timex) -> None:
    """Passes the request to the kernel (adjtimex); raises OSError if the kernel refuses it."""
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")


def step(by_ms: int) -> None:
    sec, nsec = divmod(by_ms * MILLISECOND, SECOND)
    adjust(Timex(modes=ADJ_SETOFFSET | ADJ_NANO, sec=sec, nsec=nsec))


def rate(ppm: int) -> None:
    """Sets by how many ppm the clock runs faster, as NTP does."""
    adjust(Timex(modes=ADJ_FREQUENCY, freq=ppm << 16))


def main() -> None:
    wall_offset_ns()  # the first reading in a process is slow, because its memory pages are loaded then
    with Path(sys.argv[1]).open("w") as out:
        for by_ms in STEPS_MS:
            watch = WallClock(wall_offset_ns())
            step(by_ms)
            watch.look()
            line = {"step_ms": by_ms, "said": [warning.text for warning in watch.warnings()]}
            out.write(json.dumps(line) + "\n")
        watch = WallClock(wall_offset_ns())
        rate(SLEW_PPM)
        time.sleep(SLEW_S)
        watch.look()
        rate(0)
        out.write(json.dumps({"step_ms": 0, "said": [warning.text for warning in watch.warnings()]}) + "\n")


main()
