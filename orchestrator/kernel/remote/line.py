"""This machine's end of the connection to a lab's owner on another machine (remote_owner.py): carries events,
signals and control clients.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract import manifest
from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.owning import emit, watch_endings
from orchestrator.kernel.relay import HostRelay
from orchestrator.kernel.remote.remote_lab import RemoteLab
from orchestrator.lab.loop import Calls

BEAT_S = 5.0  # s between two beats that are sent to the remote owner; the owner's timeout is a multiple
LEAVE_S = 30.0  # s from the lab's end to the end of its remote owner
Open = Callable[[socket.socket], subprocess.Popen[bytes]]


class RemoteConnection:
    """The connection to the owner of one lab on another machine.

    status: the lab's exit status, once it has ended; end: the lab's last event, which the caller emits.
    """

    def __init__(self, remote_lab: RemoteLab, control: Path) -> None:
        self.status: int | None = None
        self.end: str | None = None
        self._remote_lab = remote_lab
        self._control = control
        self._run_dir = Path(remote_lab.run_dir)
        self._selector = Calls()

    def serve(self, open_there: Open) -> int:
        """Serves until the lab or the connection has ended; returns the exit status of the ssh command that
        `open_there` starts.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                session = open_there(theirs)
            self._line = LineStream(ours.fileno())
            self._relay = HostRelay(self._line, self._selector)
            self._selector.register(self._line, selectors.EVENT_READ, self._read)
            watch_endings(self._selector, self._asked)
            self._loop()
            self._relay.close()
        try:
            return session.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            session.kill()
            return session.wait()

    def _loop(self) -> None:
        next_beat = 0.0
        while self.status is None and not self._line.ended:
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + BEAT_S
                self._send(beat=time.time_ns())
            watched = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._line.pending else 0)
            self._selector.modify(self._line, watched, self._read)
            self._selector.turn(BEAT_S)

    def _send(self, **message: Any) -> None:
        self._line.queue(json.dumps(message).encode())

    def _asked(self, number: signal.Signals) -> None:
        self._send(signal=number.name)

    def _read(self) -> None:
        self._line.flush()
        for line in self._line.read():
            self._message(self._here(line))

    def _here(self, line: bytes) -> bytes:
        """Replaces the path of the run directory on the other machine by its path on this machine in a line
        of JSON. Returns the line unchanged if the path here has a quote or a backslash.
        """
        here = self._remote_lab.run_dir
        return (
            line
            if set(here) & {'"', "\\"}
            else line.replace(self._remote_lab.run_there.encode(), here.encode())
        )

    def _message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:  # such as the output of a shell before vNET's program starts
            print(line.decode(errors="replace"), file=sys.stderr)  # noqa: T201  # raw/remote.log
            return
        if "c" in message:
            self._relay.deliver(int(message["c"]), message)
        elif "out" in message:
            self._event(message["out"])
        elif "manifest" in message:
            manifest.copy(self._run_dir, message["manifest"])
        elif "serving" in message:
            self._relay.listen(self._control)
        elif "exit" in message:
            self.status = int(message["exit"])

    def _event(self, line: str) -> None:
        if json.loads(line).get("event") == "end":
            self.end = line
        else:
            emit(line)
