"""One tcpdump in a namespace: started, waited for until it listens, stopped, its counts read."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.loop import Loop
from orchestrator.plan.model import Capture

BUFFER_KIB = 8192  # kernel buffer: about 0.1 s of 1 Gbit/s while tcpdump waits for a processor
START_NS = 15 * SECOND
STOP_NS = 10 * SECOND
# The kernel hands packets over in blocks, at the latest after libpcap's timeout of one second, and tcpdump
# leaves without the last block: wait that long before it is stopped. (Immediate mode costs a wake-up each.)
SETTLE_NS = 1_200_000_000
_COUNTS = {
    "packets": re.compile(r"^(\d+) packets? captured", re.MULTILINE),
    "dropped_kernel": re.compile(r"^(\d+) packets? dropped by kernel", re.MULTILINE),
    "dropped_interface": re.compile(r"^(\d+) packets? dropped by interface", re.MULTILINE),
}


def command(capture: Capture) -> list[str]:
    """nsenter execs tcpdump, so that the pid is tcpdump's. It writes to standard output: on hostfs it may
    not chown.
    """
    argv = [
        "nsenter",
        f"--net=/run/netns/{capture.netns}",
        "tcpdump",
        "-i",
        capture.device,
        "-n",
        "-U",
        "-w",
        "-",
    ]
    argv += ["-s", str(capture.snaplen), "-B", str(BUFFER_KIB), "--time-stamp-precision=nano"]
    return [*argv, *([capture.filter] if capture.filter else [])]


def counts(text: str) -> dict[str, int]:
    """tcpdump's last words as numbers; tcpdump leaves out a count of interface drops that is zero."""
    found = {name: pattern.search(text) for name, pattern in _COUNTS.items()}
    return {name: int(match[1]) if match else 0 for name, match in found.items()}


class TcpdumpCapture:
    """A running tcpdump. Its death before `stop` is told to `on_death`."""

    def __init__(self, loop: Loop, capture: Capture, file: Path, on_death: Callable[[str], None]) -> None:
        self._loop = loop
        self._name = capture.name
        self._on_death = on_death
        self._said = b""
        self._ended = self._stopping = False
        with file.open("wb") as output:
            self._process = subprocess.Popen(
                command(capture), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        assert self._process.stderr is not None
        self._stderr = self._process.stderr.fileno()
        loop.watch(self._stderr, self._readable)

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_listening(self) -> None:
        """LabError where tcpdump ends or does not listen in time."""
        deadline = self._loop.clock.now_ns() + START_NS
        self._loop.until(
            deadline, f"capture {self._name} to listen", lambda: b"listening on" in self._said or self._ended
        )
        if self._ended:
            raise LabError(f"captures.{self._name}: tcpdump ended at once: {self.last_words}")

    def stop(self) -> dict[str, int]:
        """End it; packets and drops. What it wrote stays."""
        self._stopping = True
        if not self._ended:
            self._process.send_signal(signal.SIGINT)
            self._loop.until(
                self._loop.clock.now_ns() + STOP_NS, f"capture {self._name} to end", lambda: self._ended
            )
        return counts(self._said.decode(errors="replace"))

    @property
    def last_words(self) -> str:
        return " / ".join(self._said.decode(errors="replace").strip().splitlines()[-3:])

    def _readable(self) -> None:
        if chunk := os.read(self._stderr, 4096):
            self._said += chunk
            return
        self._loop.unwatch(self._stderr)
        self._process.wait()
        self._ended = True
        if not self._stopping and b"listening on" in self._said:
            self._on_death(f"captures.{self._name}: tcpdump ended early: {self.last_words}")
