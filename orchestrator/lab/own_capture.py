"""Runs a capture in a process of the launcher, without tcpdump: in virtual time, where the start of a program
costs as much as thousands of packets.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capture import tcpdump
from contract.plan import Capture
from orchestrator.lab import operations
from orchestrator.lab.captures import STOP_NS
from orchestrator.lab.driver import OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop

Submit = Callable[[operations.Operation[Any], OnMessage, OnMessage | None], int]
# Within a time slice of 3 ms, in which the capture may wait for the core, 10 Gbit/s bring 2,500 frames of
# 1,500 bytes. The lab kernel zeroes each page of a ring, which is costly in short runs.
RING_BYTES = 4 << 20
SHORT_RING_BYTES = 1 << 20
SHORT_SNAPLEN = 256  # up to which the smaller ring holds as many


def possible(capture: Capture) -> bool:
    """Returns whether the launcher can run a capture: it writes files, but to no program."""
    return not capture.to and not capture.compress


def ring_bytes(snaplen: int) -> int:
    return SHORT_RING_BYTES if snaplen <= SHORT_SNAPLEN else RING_BYTES


class OwnCapture:
    """A running capture; calls `on_death` with the reason if it ends before `stop`. Raises LabError if
    tcpdump, which compiles the filter, refuses it.
    """

    def __init__(
        self, loop: Loop, submit: Submit, capture: Capture, file: Path, on_death: Callable[[str], None]
    ) -> None:
        self._loop, self._submit, self._name, self._on_death = loop, submit, capture.name, on_death
        self._stopping = False
        self._answer: Message | None = None
        self.listening = False
        snaplen = capture.snaplen or tcpdump.WHOLE_FRAME
        self._request = operations.Capture(
            capture.name, capture.netns, capture.device, str(file), snaplen, ring_bytes(snaplen),
            _compiled(capture) if capture.filter else [],
        )  # fmt: skip
        self._number = submit(self._request, self._ended, self._begun)

    def stop(self) -> dict[str, int]:
        """Ends the capture and returns its counts of packets and drops; raises TimedOut if it does not end
        within 10 s. The capture file stays.
        """
        self._stopping = True
        if self._answer is None:
            self._submit(operations.EndCapture(self._number), lambda _: None, None)
            deadline = self._loop.clock.now_ns() + STOP_NS
            self._loop.until(deadline, f"capture {self._name} to end", lambda: self._answer is not None)
        assert self._answer is not None
        counts = self._request.read(self._answer)
        return {
            "packets": counts["packets"], "received": counts["received"],
            "dropped_kernel": counts["dropped_kernel"], "dropped_interface": counts["dropped_interface"],
        }  # fmt: skip

    def _begun(self, _: Message) -> None:
        self.listening = True

    def _ended(self, answer: Message) -> None:
        self._answer = answer
        if not self._stopping:
            self._stopping = True
            when = "early" if self.listening else "at once"
            self._on_death(f"captures.{self._name}: ended {when}: {answer.get('error', 'without a reason')}")


def _compiled(capture: Capture) -> list[tuple[int, int, int, int]]:
    """Returns the filter's program, made by tcpdump on the capture's own device, because the program for a
    device reads VLAN tags where the kernel has them.
    """
    argv = ["nsenter", f"--net=/run/netns/{capture.netns}", *tcpdump.compile_argv(capture)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError((done.stderr.strip().splitlines() or ["no reason"])[-1])
        return tcpdump.program(done.stdout)
    except (OSError, ValueError) as error:
        raise LabError(f"captures.{capture.name}: tcpdump refuses the filter: {error}") from error
