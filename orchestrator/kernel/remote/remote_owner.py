"""The owner of a lab on the other machine, which ssh's input and output connect to the owner on the user's
machine.

Both send JSON lines, as over a guest's serial line (uml/guest.py). This side sends `out` (a line of the lab),
`serving`, `beat`, `manifest` (its text when it has changed), `exit` and the clients' lines of relay.py; it
receives `signal`, `beat` and the clients' lines. If the connection ends, or no line arrives for SILENCE_S, it
interrupts the lab; the measurements stay here until `vnet down` fetches them.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import threading
import time
from pathlib import Path
from typing import Any

from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.protocol import LabHandle
from orchestrator.kernel.relay import GuestRelay
from orchestrator.lab.loop import Calls

BEAT_S = 1.0
SILENCE_S = 60.0  # line.py sends a beat every 5 s; a network may lose some of them
STDIN, STDOUT, STDERR = 0, 1, 2


class RemoteOwner:
    """Owns one lab from its start to its end, in one thread; a second thread reads the lab's events."""

    def __init__(self, handle: LabHandle, run_dir: Path) -> None:
        self.handle = handle
        self.manifest = run_dir / "manifest.json"
        self.selector = Calls()
        self.line = LineStream(STDIN, out=STDOUT)
        self.relay = GuestRelay(handle.control, self.line, self.selector)
        self._heard = time.monotonic()
        self._alone = False
        self._serving = False
        self._told_ns = 0  # modification time of the manifest that was sent last

    def run(self) -> int:
        """Serves until the lab's process has ended; returns its exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _: self._left_alone(signal.Signals(n).name))
        read, write = os.pipe()
        threading.Thread(target=self._pump, args=(write,), daemon=True).start()
        events = LineStream(read)
        self.selector.register(events, selectors.EVENT_READ, lambda: self._events(events))
        self.selector.register(self.line, selectors.EVENT_READ, self._requests)
        next_beat = 0.0
        while not events.ended:
            self._watch_output()
            self.selector.turn(BEAT_S)
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + BEAT_S
                self._beat()
        status = self.handle.wait()
        self._tell_manifest()
        self.send(exit=status)
        if not self._alone:
            os.set_blocking(STDOUT, True)
            self.line.flush()
        return status

    def send(self, **message: Any) -> None:
        """Sends one line to the user's machine, unless the connection has ended."""
        if not self._alone:
            self.line.queue(json.dumps(message).encode())

    def _pump(self, write: int) -> None:
        with os.fdopen(write, "wb", buffering=0) as out:
            for event in self.handle.events():
                out.write(json.dumps(event).encode() + b"\n")

    def _events(self, events: LineStream) -> None:
        lines = events.read()
        if lines:  # a client that reads `serving` may send requests at once
            self._note_serving()
        for line in lines:
            self.send(out=line.decode())

    def _requests(self) -> None:
        for line in self.line.read():
            self._heard = time.monotonic()
            message = json.loads(line)
            if "signal" in message:
                self.handle.interrupt()
            elif "c" in message:
                self.relay.from_host(message)
        if self.line.ended:
            self._left_alone("the connection ended")

    def _beat(self) -> None:
        self.send(beat=time.time_ns())
        self._tell_manifest()
        self._note_serving()
        if time.monotonic() - self._heard > SILENCE_S:
            self._left_alone(f"no message from home for {SILENCE_S:g} s")

    def _note_serving(self) -> None:
        if not self._serving and self.handle.control.exists():
            self._serving = True
            self.send(serving=True)

    def _tell_manifest(self) -> None:
        try:
            changed_ns = self.manifest.stat().st_mtime_ns
        except FileNotFoundError:  # the lab has not begun yet
            return
        if changed_ns != self._told_ns:
            self._told_ns = changed_ns
            self.send(manifest=self.manifest.read_text())

    def _left_alone(self, why: str) -> None:
        """Interrupts the lab after a signal or after the loss of the connection, so that the lab
        tears down.
        """
        if self._alone:
            return
        self._alone = True
        with contextlib.suppress(OSError):  # the connection may still work
            os.write(STDERR, f"{why}: the lab was ended\n".encode())
        self.selector.unregister(self.line)
        if STDOUT in self.selector.get_map():
            self.selector.unregister(STDOUT)
        self.handle.interrupt()

    def _watch_output(self) -> None:
        watched = STDOUT in self.selector.get_map()
        if self.line.pending and not watched and not self._alone:
            self.selector.register(STDOUT, selectors.EVENT_WRITE, self.line.flush)
        elif watched and not self.line.pending:
            self.selector.unregister(STDOUT)
