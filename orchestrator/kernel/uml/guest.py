"""Inside a User-Mode Linux lab: its first process, which runs the lab process and carries its socket.

Started by init.sh; standard library only. Over the serial line go JSON lines (see `Relay` in relay.py):
`hello`, `out` (a line of the lab's standard output), `serving`, `beat`, `got` (bytes read so far), `exit`;
from outside `signal`.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path
from typing import Any

from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.relay import GuestRelay
from orchestrator.lab.loop import Calls

POWER_OFF = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, include/uapi/linux/reboot.h
BEAT_S = 1.0


class Supervisor:
    """Process 1 of the guest: one lab process, one serial line, reaping of whatever ends."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.selector = Calls()
        self.serial = LineStream(open_serial(settings["serial"]))
        self.relay = GuestRelay(Path(settings["control"]), self.serial, self.selector)
        self.status: int | None = None
        self._serving = False

    def run(self) -> int:
        """Run the lab process to its end; its exit status (128 + n for a signal)."""
        self.send(hello={"release": os.uname().release, "time_ns": time.time_ns()})
        child = subprocess.Popen(
            self.settings["argv"], env=self.settings["env"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        output = LineStream(child.stdout.fileno())
        # A pidfd and no SIGCHLD: under Linux 6.1's UML a signal can make epoll_wait fail with ENOSYS.
        self.selector.register(os.pidfd_open(child.pid), selectors.EVENT_READ, lambda: None)
        self.selector.register(output, selectors.EVENT_READ, lambda: self._output(output))
        self.selector.register(self.serial, selectors.EVENT_READ, lambda: self._requests(child.pid))
        self._loop(child.pid)
        while self._output(output):
            pass
        child.returncode = self.status
        return self.status if self.status is not None else 1

    def send(self, **message: Any) -> None:
        """One line to the machine outside."""
        self.serial.queue(json.dumps(message).encode())

    def _loop(self, lab: int) -> None:
        next_beat = 0.0
        while self.status is None:
            watched = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.serial.pending else 0)
            self.selector.modify(self.serial, watched, self.selector.get_key(self.serial).data)
            self.selector.turn(BEAT_S)
            self.serial.flush()
            self._reap(lab)
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + BEAT_S
                self._beat()

    def _beat(self) -> None:
        self.send(beat=time.time_ns())
        self._note_serving()

    def _note_serving(self) -> None:
        if not self._serving and Path(self.settings["control"]).exists():
            self._serving = True
            self.send(serving=True)

    def _output(self, output: LineStream) -> int:
        lines = output.read()
        if lines:  # whoever reads that the lab serves may ask it at once
            self._note_serving()
        for line in lines:
            self.send(out=line.decode(errors="replace"))
        if output.ended and output in self.selector.get_map():
            self.selector.unregister(output)
        return len(lines)

    def _requests(self, lab: int) -> None:
        before = self.serial.received
        lines = self.serial.read()
        if self.serial.received > before:
            self.send(got=self.serial.received)
        for line in lines:
            message = json.loads(line)
            if "signal" in message:
                os.kill(lab, signal.Signals[message["signal"]])
            else:
                self.relay.from_host(message)

    def _reap(self, lab: int) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == lab:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code


def open_serial(path: str) -> int:
    """The serial line, raw: no echo, no line editing, every byte as it is."""
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(fd)
    return fd


def main() -> None:
    """Run what the settings file (argument 1) says, report the exit status, stop the kernel."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    supervisor = Supervisor(settings)
    status = supervisor.run()
    os.sync()  # results are on the host before it hears of the end
    supervisor.send(exit=status)
    os.set_blocking(supervisor.serial.fd, True)
    supervisor.serial.flush()
    termios.tcdrain(supervisor.serial.fd)
    ctypes.CDLL(None).reboot(POWER_OFF)


if __name__ == "__main__":
    main()
