"""The process that owns a User-Mode Linux lab: boots the guest, carries its events and control socket out,
cleans up.

kernel.py starts it as `python -m orchestrator.kernel.uml.owner BOOT_JSON`. Standard output: the lab's JSON
lines, as the lab process itself writes them under the host kernel. Exit status: that of the lab process; 1 if
the guest failed.

End of file on standard input means that the command that wanted this run is gone; the lab is then
interrupted.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from contract import codec
from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.owning import emit, emit_end, watch_endings
from orchestrator.kernel.process import end, session_members
from orchestrator.kernel.relay import HostRelay
from orchestrator.kernel.uml.boot import OWN, SERIAL, SETTINGS, Boot
from orchestrator.kernel.uml.console import cause, failure, warnings
from orchestrator.kernel.uml.outer import OuterSampler
from orchestrator.lab.errors import LabError
from orchestrator.lab.heartbeat import OUTER, Counters, Heartbeat, of_process
from orchestrator.lab.loop import Calls
from orchestrator.lab.state import State

PR_SET_PDEATHSIG = 1
# bytes; a guest's serial line stalls for ever if more than its buffer of 4096 bytes arrives at once
SERIAL_WINDOW = 2048
# s; the supervisor in the guest reports every second, but a loaded machine may stall it for long
SILENCE_S = 120.0
GRACE_S = 60.0
STOP_S = 10.0  # s from the lab's exit status to the end of the kernel


class Owner:
    """Owns one guest from boot to end, in one thread."""

    def __init__(self, boot: Boot, state: State) -> None:
        self.boot = boot
        self.state = state
        self.selector = Calls()
        self.console = Path(boot.run_dir) / "raw" / "console.log"
        self.sampler = OuterSampler(Path(boot.run_dir) / "raw" / "outer.csv")
        self.heartbeat: Heartbeat | None = None
        self.status: int | None = None
        self.booted = self.serving = False
        self.died = "its owner process failed; raw/owner.log says how"  # until the guest reports its status
        self.deadline = (time.monotonic() + boot.deadline_s, f"boot within {boot.deadline_s:g} s")
        self.asked: list[signal.Signals] = []

    def run(self) -> int:
        """Boots and serves the guest until it ends or must be ended; returns the exit status."""
        ours, theirs = socket.socketpair()
        self.serial = LineStream(ours.fileno(), window=SERIAL_WINDOW)
        self.relay = HostRelay(self.serial, self.selector)
        self.guest = self._boot(theirs.fileno())
        theirs.close()
        self.state.record("uml", self.guest.pid)
        counters = Counters(of_process(self.guest.pid))
        self.heartbeat = Heartbeat(
            self.console.with_name(OUTER), time.time_ns() - time.monotonic_ns(), counters
        )
        self.selector.register(self.serial, selectors.EVENT_READ, self._serial)
        self.selector.register(os.pidfd_open(self.guest.pid), selectors.EVENT_READ, lambda: None)
        watch_endings(self.selector, self._asked)
        try:
            self.heartbeat.start()
            reason = self._loop()
        except LabError as error:
            reason = str(error)
        finally:
            self._end_guest()
        return self._report(reason)

    def _boot(self, serial: int) -> subprocess.Popen[bytes]:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # hostfs holds one descriptor per open file
        argv = [word.replace(SERIAL, str(serial)) for word in self.boot.argv]
        (self.state.directory / "binary").write_text(argv[0])
        shutil.copy(self.console.with_name(SETTINGS), self.state.directory / SETTINGS)
        # The umask sets the mode of the kernel's control socket, because any user who can connect to it could
        # halt the lab.
        (self.state.directory / OWN).mkdir(mode=0o700)
        prctl = ctypes.CDLL(None).prctl
        with self.console.open("wb") as console:
            return subprocess.Popen(
                argv,
                env=self.boot.env,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                cwd="/",
                pass_fds=[serial],
                start_new_session=True,
                preexec_fn=lambda: prctl(
                    PR_SET_PDEATHSIG, signal.SIGKILL
                ),  # so that no guest is left that nobody can reach
            )

    def _loop(self) -> str | None:
        """Serves until the guest ends. Returns the reason why it must be ended; None if it ended or reported
        an exit status.
        """
        next_sample = 0.0
        while self.guest.poll() is None:
            if (now := time.monotonic()) >= next_sample:
                next_sample = max(next_sample + 1.0, now)
                self.sampler.sample()
            if now > self.deadline[0]:
                return f"the guest did not {self.deadline[1]}" if self.status is None else None
            watched = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.serial.pending else 0)
            if not self.serial.ended:
                self.selector.modify(self.serial, watched, self._serial)
            self.selector.turn(max(0.0, min(next_sample, self.deadline[0]) - time.monotonic()))
        self._serial()  # reads the last output
        return None

    def _serial(self) -> None:
        self.serial.flush()
        while lines := self.serial.read():
            for line in lines:
                self._message(json.loads(line))
        if self.serial.ended and self.serial in self.selector.get_map():
            self.selector.unregister(self.serial)

    def _message(self, message: dict[str, Any]) -> None:
        if "c" in message:
            self.relay.deliver(int(message["c"]), message)
        elif "got" in message:
            self.serial.acknowledge(int(message["got"]))
        elif "out" in message:
            emit(message["out"])
        elif "exit" in message:
            self.status = int(message["exit"])
            self.deadline = (time.monotonic() + STOP_S, "stop")
        elif "serving" in message:
            self.relay.listen(self.state.directory / "control.sock")
            self.serving = True
        elif not self.asked and self.status is None:  # the message is hello or beat
            self.booted = True
            self.deadline = (time.monotonic() + SILENCE_S, f"report for {SILENCE_S:.0f} s")
        if "hello" in message:
            for number in self.asked:
                self._forward(number)

    def _asked(self, number: signal.Signals) -> None:
        if not self.asked:
            self.deadline = (
                time.monotonic() + GRACE_S,
                f"tear down within {GRACE_S:.0f} s of the request",
            )
        self.asked.append(number)
        if self.booted:
            self._forward(number)

    def _forward(self, number: signal.Signals) -> None:
        self.serial.queue(json.dumps({"signal": number.name}).encode())

    def _end_guest(self) -> None:
        self.relay.close()
        self.guest.kill()
        self.guest.wait()
        end(session_members(self.guest.pid, self.boot.argv[0]))
        self.sampler.sample()
        self.sampler.close()
        if self.heartbeat is not None:
            self.heartbeat.stop()

    def _report(self, reason: str | None) -> int:
        text = self.console.read_text(errors="replace")
        for warning in warnings(text):
            emit(json.dumps({"event": "warning", **warning}))
        if self.status is None:
            self.died = cause(text, reason, self.guest.returncode)
            emit_end(failure(text, reason, self.guest.returncode, self.console), 1)
        return 1 if self.status is None else self.status


def main() -> int:
    """Owns the guest that the file (argument 1) describes; returns the exit status."""
    boot = codec.from_json(Boot, Path(sys.argv[1]).read_text())
    try:
        state = State(Path(boot.state_dir), boot.lab, "uml", Path(boot.run_dir))
    except LabError as error:
        emit_end(str(error), 1)
        return 1
    owner = Owner(boot, state)
    try:
        return owner.run()
    finally:
        if boot.stays and owner.serving and owner.status is None:
            state.leave(owner.died)
        else:
            state.release()


if __name__ == "__main__":
    sys.exit(main())
