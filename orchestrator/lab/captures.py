"""Runs one tcpdump in a namespace: starts it, waits until it captures, stops it (also at its limit), and
reads its counts.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from capture import tcpdump
from contract.plan import Capture
from orchestrator.lab.capture_pipe import Running, pipe
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.driver import CaptureProcess
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.loop import Loop

if TYPE_CHECKING:
    from orchestrator.lab.lab import Lab

START_NS = 20 * SECOND
STOP_NS = 10 * SECOND
# Interval between two looks at the file's size; at 1 Gbit/s the file grows by 12 MB in this time.
LOOK_NS = 100 * MILLISECOND


def command(capture: Capture) -> list[str]:
    """Returns the command line of a capture. nsenter replaces itself by tcpdump, so that the pid is
    tcpdump's.
    """
    return ["nsenter", f"--net=/run/netns/{capture.netns}", *tcpdump.argv(capture)]


def end_at_limit(lab: Lab, point: Capture, stop: Callable[[str], None]) -> None:
    """Looks at the size of a capture's file ten times a second. At the limit, ends the capture by `stop`, and
    warns that its figures cover only the time before.
    """
    mine = lab.captures[point.name]

    def look() -> None:
        if lab.captures.get(point.name) is not mine:
            timer.cancelled = True
        elif mine.file.stat().st_size >= point.limit_bytes:
            timer.cancelled = True
            stop(point.name)
            size = mine.file.stat().st_size
            text = f"captures.{point.name}: ended at its limit, {size} bytes: its figures end there"
            remedy = "raise `limit`, lower `snaplen`, or give it a `filter`"
            lab.events.warn(Warning("capture", text, remedy))

    timer = lab.loop.every(LOOK_NS, look)


def counts(said: str) -> dict[str, int]:
    """Returns the packet counts that tcpdump prints at its end; raises LabError if they are missing."""
    try:
        found = tcpdump.statistics(said)
    except ValueError as error:
        raise LabError(f"{error}; its file is kept, but its losses are unknown") from error
    return {
        "packets": found.packets, "received": found.received, "dropped_kernel": found.dropped_kernel,
        "dropped_interface": found.dropped_interface,
    }  # fmt: skip


def await_start(loop: Loop, name: str, process: CaptureProcess, died: Sequence[str]) -> None:
    """Waits until a capture captures. Raises LabError if it ends before that (`died` then has the reason).
    Raises TimedOut after 20 s, or the exception that interrupts the wait; in both cases it ends the capture
    first.
    """
    deadline = loop.clock.now_ns() + START_NS
    try:
        loop.until(deadline, f"capture {name}", lambda: bool(died) or process.listening)
    except BaseException:
        with suppress(LabError):  # the first error counts: a capture that did not begin has no counts
            process.stop()
        raise
    if died:
        raise LabError(died[0])


class TcpdumpCapture:
    """A running tcpdump; calls `on_death` with the reason if it ends before `stop`."""

    def __init__(
        self,
        loop: Loop,
        capture: Capture,
        file: Path,
        on_death: Callable[[str], None],
    ) -> None:
        self._name = capture.name
        self._on_death = on_death
        self._stopping = False
        output, self._stages = pipe(loop, capture, file, self._lost)
        try:
            self._tcpdump = Running(loop, command(capture), subprocess.DEVNULL, output, self._ended)
        finally:
            output.close()  # tcpdump has its own copy of this descriptor; without tcpdump the programs end

    @property
    def pid(self) -> int:
        return self._tcpdump.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of tcpdump and of the programs that process its packets."""
        return (self.pid, *(stage.pid for stage in self._stages))

    @property
    def listening(self) -> bool:
        """Whether tcpdump has reported that it captures."""
        return tcpdump.listening(self._tcpdump.said)

    def stop(self) -> dict[str, int]:
        """Ends tcpdump and returns its counts of packets and drops; kills it and raises TimedOut if it does
        not end within 10 s. The capture file stays.
        """
        self._stopping = True
        if not self._tcpdump.ended:
            self._tcpdump.process.send_signal(signal.SIGINT)
            self._tcpdump.await_end(STOP_NS, f"capture {self._name}")
        for stage in self._stages:
            stage.await_end()
        return counts(self._tcpdump.said)

    @property
    def last_words(self) -> str:
        return self._tcpdump.last_words

    def _ended(self) -> None:
        when = "early" if self.listening else "at once"
        self._lost(f"captures.{self._name}: tcpdump ended {when}: {self.last_words}")

    def _lost(self, why: str) -> None:
        """Reports the reason of an early end once; later reasons are consequences of the first."""
        if not self._stopping:
            self._stopping = True
            self._on_death(why)
