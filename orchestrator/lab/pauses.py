"""Stops the clock of a lab in virtual time at given moments, without a trace in an undisturbed run.

The guest's first process waits for each moment, then looks again and again for a file that the owner of the
lab's kernel writes to the run directory (orchestrator/kernel/virtual/standing.py). Its system calls take no
virtual time, and its priority is a real-time one, so no other process of the lab runs meanwhile and the clock
stands. The lab process does not notice: it is neither woken nor does it read the clock, of which each reading
takes 256 ns.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLACE = "raw/standing"  # below the run directory: the mail between owner and lab
TIMER_ABSTIME = 1  # include/uapi/linux/time.h
FIRST, SECOND_CLASS = 1, 2  # real-time priorities: who keeps the clock, and who serves those who look
LINE = 4096


@dataclass(frozen=True, slots=True)
class Pause:
    """A moment at which the clock stands: `at_ns` after the start of `phase`; `said`: the user's words."""

    phase: str
    at_ns: int
    said: str


def stop_name(number: int, at_ns: int) -> str:
    """Returns the name of the directory that announces stop `number` at lab time `at_ns` (Unix ns)."""
    return f"at-{number}-{at_ns}"


def order_name(number: int) -> str:
    """Returns the name of the file with the owner's lines `number`."""
    return f"in-{number}"


class Keeper:
    """The lab process's ends of the pipes to the guest's first process, which keeps the clock (`keep`).

    That process is there in every lab and has nothing else to do: another one would move the numbers of all
    later processes, and with them the run.
    """

    def __init__(self, times: int, calls: int) -> None:
        self._times = times
        self.calls = calls  # readable when somebody wants to look into the lab

    def begin(self, stops: Sequence[int], offset_ns: int) -> None:
        """Gives the lab times (Unix ns, sorted) at which the clock shall stand. offset_ns: lab time minus
        CLOCK_MONOTONIC.
        """
        self._write({"stops": list(stops), "offset_ns": offset_ns})

    def go_on(self, order: dict[str, object], next_file: int) -> None:
        """Lets the clock move again after a look into the lab. order: as the owner wrote it."""
        self._write({"order": order, "next": next_file})

    def end(self) -> None:
        """Ends the pauses; those that are still to come do not come."""
        os.close(self._times)
        os.close(self.calls)

    def _write(self, told: dict[str, Any]) -> None:
        os.write(self._times, json.dumps(told).encode() + b"\n")


def keep(place: Path, times: int, calls: int) -> None:
    """Stands at each moment that the lab process writes to the descriptor `times`, until that is closed.
    Writes to `calls` the number of the owner's file with which somebody begins to look into the lab.
    """
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIRST))
    told = _read(times)
    if told is None:
        return
    place.mkdir(parents=True, exist_ok=True)
    stops, offset_ns, number, file = list(told["stops"]), int(told["offset_ns"]), 0, 0
    while stops:
        at_ns = stops.pop(0)
        if not sleep_until(at_ns - offset_ns, times):
            return
        number += 1
        (place / stop_name(number, at_ns)).mkdir()
        lines = await_file(place / order_name(file))
        order = lines[0].get("order")
        if order is None:
            os.write(calls, f"{file} {at_ns}\n".encode())
            back = _read(times)
            if back is None:
                return
            order, file = back["order"], int(back["next"])
        else:
            file += 1
        if order["go"] == "step":
            stops.insert(0, at_ns + int(order["ns"]))
            stops.sort()


def await_file(path: Path) -> list[dict[str, Any]]:
    """Waits until a file exists, and never reads the clock meanwhile; returns its JSON lines."""
    name = str(path)
    while not os.path.exists(name):  # noqa: PTH110  # one system call and nothing else
        pass
    return [json.loads(line) for line in path.read_text().splitlines()]


def sleep_until(monotonic_ns: int, times: int) -> bool:
    """Sleeps until CLOCK_MONOTONIC shows `monotonic_ns`; returns False if `times` is closed before. Raises
    OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    timer = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
    due = (ctypes.c_long * 4)(0, 0, monotonic_ns // 1_000_000_000, monotonic_ns % 1_000_000_000)
    if timer < 0 or libc.timerfd_settime(timer, TIMER_ABSTIME, due, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "timerfd")
    try:
        poll = select.poll()
        poll.register(timer, select.POLLIN)
        poll.register(times, select.POLLIN)
        return {fd for fd, _ in poll.poll()} == {timer}
    finally:
        os.close(timer)


def _read(descriptor: int) -> dict[str, Any] | None:
    data = b""
    while not data.endswith(b"\n"):
        chunk = os.read(descriptor, LINE)
        if not chunk:
            return None
        data += chunk
    found: dict[str, object] = json.loads(data)
    return found
