"""Forks a process that needs no new interpreter and no imports: the owner of a lab in virtual time, which
otherwise costs 0.2 s of a core.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import IO

POLL_S = 0.005
# signals whose handlers the child would inherit
RESET = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


class Forked:
    """A forked child that runs `work` and ends with its result as exit status; 1, with a traceback on
    `errors`, if `work` raises. Has those methods of subprocess.Popen that the handle of a lab uses.

    The child has a session of its own, `/` as its directory, `output` and `errors` as standard output and
    error, and no other open file of its parent. Its standard input is a pipe that only the parent holds: its
    end of file shows the child that the parent has ended. `work` must import nothing, since a thread of the
    parent may hold the lock of an import.
    """

    def __init__(self, work: Callable[[], int], output: IO[bytes], errors: IO[bytes]) -> None:
        self.args = "forked"
        self.returncode: int | None = None
        reading, writing = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # otherwise the child would write the buffered text once more
        self.pid = os.fork()
        if self.pid == 0:
            _child(work, (reading, output.fileno(), errors.fileno()))
        os.close(reading)
        self.stdin = os.fdopen(writing, "wb", buffering=0)

    def poll(self) -> int | None:
        """Returns the exit status, -n for signal n, and closes the pipe; None while the child runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
                self.stdin.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit status as `poll` does; raises subprocess.TimeoutExpired after `timeout`
        seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            time.sleep(POLL_S)  # waits until the child has ended; the deadline is checked above
        return status


def _child(work: Callable[[], int], files: tuple[int, int, int]) -> None:
    """Runs `work` in the child, with `files` as standard input, output and error; never returns."""
    status = 1
    try:
        os.setsid()
        os.chdir("/")
        signal.set_wakeup_fd(-1)
        for number in RESET:
            signal.signal(number, signal.SIG_DFL)
        moved = [os.dup(file) for file in files]  # a file may itself have descriptor 0, 1 or 2
        for place, file in enumerate(moved):
            os.dup2(file, place)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdout, sys.stderr = (os.fdopen(place, "w", closefd=False) for place in (1, 2))
        status = work()
        sys.stdout.flush()
    except BaseException:  # reported here, because the child must not return into its parent's code
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
