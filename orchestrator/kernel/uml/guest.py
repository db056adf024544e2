"""Supervises a User-Mode Linux lab as the first process in the guest: runs the lab process and carries its
control socket.

It continues init.py and uses the standard library only. Over the serial line it sends JSON lines (see `Relay`
in relay.py): `hello`, `out` (a line of the lab's standard output), `serving`, `beat`, `got` (bytes read so
far), `exit`, and the lab's lines to clients; it receives `signal` and the clients' lines.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import selectors
import signal
import sys
import termios
import time
import tty
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.relay import GuestRelay
from orchestrator.lab.loop import Calls

POWER_OFF = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, include/uapi/linux/reboot.h
BEAT_S = 1.0


class Supervisor:
    """Process 1 of the guest: runs one lab process, serves the serial line, and reaps all ended processes."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.selector = Calls()
        self.serial = LineStream(open_serial(settings["serial"]))
        self.relay = GuestRelay(Path(settings["control"]), self.serial, self.selector)
        self.status: int | None = None
        self._serving = False

    def run(self) -> int:
        """Runs the lab process to its end; returns its exit status (128 + n for a signal)."""
        self.send(hello={"release": os.uname().release, "time_ns": time.time_ns()})
        lab, stdout = self._start(self.settings["python"], self.settings["env"])
        output = LineStream(stdout)
        # The loop uses a pidfd and not SIGCHLD, because under Linux 6.1's UML a signal can make epoll_wait
        # fail with ENOSYS.
        self.selector.register(os.pidfd_open(lab), selectors.EVENT_READ, lambda: None)
        self.selector.register(output, selectors.EVENT_READ, lambda: self._output(output))
        self.selector.register(self.serial, selectors.EVENT_READ, lambda: self._requests(lab))
        self._loop(lab)
        while self._output(output):
            pass
        return self.status if self.status is not None else 1

    def _start(self, words: Sequence[str], env: Mapping[str, str]) -> tuple[int, int]:
        """Starts the lab process by a fork, since half of its modules are loaded already; returns its pid and
        standard output.

        words: a file or `-m` module with arguments. It runs without site-packages, as this process does.
        """
        read, write = os.pipe()
        if pid := os.fork():
            os.close(write)
            return pid, read
        for stream in (read, self.serial.fd):
            os.close(stream)
        self.selector.close()
        os.dup2(write, sys.stdout.fileno())
        os.close(write)
        os.environ.clear()
        os.environ.update(env)
        # the interpreter may be in the machine's /tmp, while the lab has a /tmp of its own
        sys.executable = f"/host{sys.executable}"
        if words[0] == "-m":
            sys.argv = list(words[1:])
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(words)
            runpy.run_path(words[0], run_name="__main__")
        sys.exit()

    def send(self, **message: Any) -> None:
        """Sends one JSON line to the owner outside."""
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
        if lines:  # sent first, because a client that sees `serving` can send requests at once
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
    """Opens the serial line in raw mode: no echo, no line editing, every byte unchanged. Returns its
    descriptor.
    """
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(fd)
    return fd


def main(settings: dict[str, Any]) -> None:
    """Runs the lab process of the settings, reports its exit status, and powers the kernel off."""
    supervisor = Supervisor(settings)
    status = supervisor.run()
    os.sync()  # writes results to the host before the host reads the end
    supervisor.send(exit=status)
    os.set_blocking(supervisor.serial.fd, True)
    supervisor.serial.flush()
    termios.tcdrain(supervisor.serial.fd)
    ctypes.CDLL(None).reboot(POWER_OFF)
