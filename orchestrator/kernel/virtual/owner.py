"""The process that owns a lab in virtual time: boots the guest, passes its lines on, watches it, cleans up.

kernel.py forks it from the command that runs the lab. Standard output: the lab's JSON lines. Exit status:
that of the lab process; 1 if the guest failed or the watchdog ended it, 130 if it was ended on request. The
owner sends nothing to the guest: to end it, it kills the guest; what the guest has written stays.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
from pathlib import Path

from contract import manifest
from orchestrator.kernel.owning import emit, emit_end
from orchestrator.kernel.process import end, session_members
from orchestrator.kernel.uml.boot import OWN
from orchestrator.kernel.uml.console import failure, warnings
from orchestrator.kernel.virtual.booting import LAB_ARCHIVE, VirtualBoot, lay_out
from orchestrator.kernel.virtual.core import cores_for_a_lab
from orchestrator.kernel.virtual.guest import LINES, STATUS
from orchestrator.kernel.virtual.watch import Watchdog
from orchestrator.lab.errors import LabError
from orchestrator.lab.state import State

PR_SET_PDEATHSIG = 1
POLL_S = 0.1
INTERRUPTED = 130


class VirtualOwner:
    """Owns one guest from boot to end, in one thread."""

    def __init__(self, boot: VirtualBoot, state: State) -> None:
        self.boot = boot
        self.state = state
        self.raw = Path(boot.run_dir) / "raw"
        self.console = self.raw / "console.log"
        self.asked: signal.Signals | None = None
        self._read = 0
        self._partial = b""
        self._ended = False

    def run(self) -> int:
        """Boots and watches the guest until it ends or must be ended; returns the exit status."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked)
        with cores_for_a_lab() as cores:
            reason = self._guest(cores)
        self._pass_on(ended=True)
        return self._report(reason)

    def _guest(self, cores: set[int]) -> str | None:
        """Runs the guest on those cores until it ends or must be ended. Returns the reason why it was killed;
        None if it ended by itself or on request.
        """
        self.guest = self._boot(cores)
        self.state.record("uml", self.guest.pid)
        try:
            return self._watch(Watchdog(self.guest.pid, self.raw, self.boot.stall_s, self.boot.until_ns))
        finally:
            self.guest.kill()
            self.guest.wait()
            (self.raw / LAB_ARCHIVE).unlink(missing_ok=True)
            end(session_members(self.guest.pid, self.boot.argv[0]))

    def _asked(self, number: int, _: object) -> None:
        self.asked = signal.Signals(number)

    def _boot(self, cores: set[int]) -> subprocess.Popen[bytes]:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # hostfs holds one descriptor per open file
        stage = self.state.directory
        (stage / "binary").write_text(self.boot.argv[0])
        lay_out(self.boot, stage)
        # The umask sets the mode of the kernel's control socket; any user who can connect could halt the lab.
        (stage / OWN).mkdir(mode=0o700)
        (self.raw / STATUS).unlink(missing_ok=True)
        prctl = ctypes.CDLL(None).prctl

        def before() -> None:
            # the guest must not outlive its owner, because nothing else can reach it
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, cores)

        with self.console.open("wb") as console:
            return subprocess.Popen(
                self.boot.argv,
                env=self.boot.env,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                cwd=stage,
                start_new_session=True,
                preexec_fn=before,
            )

    def _watch(self, watchdog: Watchdog) -> str | None:
        """Waits until the guest ends or must be ended. Returns the reason why it must be killed; None if it
        ended by itself or on request.
        """
        while self.guest.poll() is None and self.asked is None:
            self._pass_on()
            if reason := watchdog.look():
                return reason
            self._wait()
        return None

    def _wait(self) -> None:
        """Waits POLL_S. An end of file on standard input counts as SIGTERM, since it means that the command
        that wanted this run has ended.
        """
        try:
            if select.select([0], [], [], POLL_S)[0] and not os.read(0, 512):
                self.asked = self.asked or signal.SIGTERM
        except InterruptedError:
            return

    def _pass_on(self, *, ended: bool = False) -> None:
        """Passes on the lines that the guest has written since the last call; `ended`: True if it writes no
        more.

        The guest writes whole pages to the host, so a file that still grows may have zeros where lines come
        later. Until the guest has ended, reads up to the first zero and later from there again.
        """
        path = self.raw / LINES
        if not path.exists() or path.stat().st_size <= self._read:
            return
        with path.open("rb") as lines:
            lines.seek(self._read)
            data = lines.read()
        if not ended:
            data = data.partition(b"\0")[0]
        self._read += len(data)
        *whole, self._partial = (self._partial + data.replace(b"\0", b"")).split(b"\n")
        for line in whole:
            emit(line.decode(errors="replace"))
            self._ended = self._ended or b'"event":"end"' in line.replace(b" ", b"")

    def _report(self, reason: str | None) -> int:
        text = self.console.read_text(errors="replace")
        for warning in warnings(text):
            emit(json.dumps({"event": "warning", **warning}))
        if (status := self._status()) is not None:
            return status
        if self.asked is not None:
            said, number = f"interrupted ({self.asked.name})", INTERRUPTED
            self._mark(said, "asked")
        elif reason is not None:
            said, number = reason, 1
            self._mark(said, "watchdog")
        else:
            said, number = failure(text, None, self.guest.returncode, self.console), 1
        if not self._ended:
            emit_end(said, number)
        return number

    def _status(self) -> int | None:
        """Returns the lab process's exit status; None if the guest ended before it had written the whole
        status.
        """
        try:
            return int((self.raw / STATUS).read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _mark(self, why: str, by: str) -> None:
        """Records the end in the manifest if there is one, since the killed lab process could not."""
        run_dir = Path(self.boot.run_dir)
        if manifest.read(run_dir):
            manifest.ended(run_dir, "interrupted", why, by)


def own(boot: VirtualBoot) -> int:
    """Boots the guest and owns it to its end; returns the exit status."""
    try:
        state = State(Path(boot.state_dir), boot.lab, "uml", Path(boot.run_dir), "virtual")
    except LabError as error:
        emit_end(str(error), 1)
        return 1
    try:
        return VirtualOwner(boot, state).run()
    finally:
        state.release()
