"""Implements a resident process that has imported the modules that run and reduce a cell, and forks a process
for each cell of a worker: `python -m orchestrator.campaign.engines.resident`. A cell then needs 0.8 s of a
core less (2026).

Its standard input is a socket. A message with four open files starts a cell's process; the first three become
its standard input, output and error, and the resident process writes the exit status as text to the fourth.
The answer is the new process's number. The resident process ends when the socket closes; a cell's process
ends when its own standard input does.
"""

from __future__ import annotations

import gc
import importlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from typing import IO

from orchestrator.project import CODE_ROOT

FILES = 4  # number of descriptors that come with each request
ASK = b"cell"
MODULES = ("capture.reduce", "orchestrator.campaign.cell", "orchestrator.kernel.virtual.owner")


class Resident:
    """The resident process of a worker, from the worker's side."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator.campaign.engines.resident"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(CODE_ROOT)},
                start_new_session=True,
            )

    def fork(self, log: IO[bytes]) -> Child:
        """Returns a new process that runs a cell, with `log` as its standard error; raises OSError if the
        resident process has ended.
        """
        pairs = [os.pipe() for _ in range(3)]
        (stdin, told), (said, stdout), (ended, status) = pairs
        try:
            socket.send_fds(self._orders, [ASK], [stdin, stdout, log.fileno(), status])
            answer = self._orders.recv(64)
            if not answer:
                raise OSError("the resident process of the worker has ended")
        except OSError:
            for mine in (told, said, ended):
                os.close(mine)
            raise
        finally:
            for theirs in (stdin, stdout, status):
                os.close(theirs)
        return Child(int(answer), os.fdopen(told, "wb"), os.fdopen(said, "rb", buffering=0), ended)

    def close(self) -> None:
        """Ends the resident process and waits for it; running cells continue."""
        self._orders.close()
        self._process.wait()


class Child:
    """The process of a cell that the resident process has forked, with those members of subprocess.Popen that
    a job uses.
    """

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], ended: int) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._ended = ended
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit status, -n for signal n; None while the process runs."""
        with selectors.DefaultSelector() as selector:
            if self.returncode is None:
                selector.register(self._ended, selectors.EVENT_READ)
                if selector.select(0):
                    self.wait()
        return self.returncode

    def wait(self) -> int:
        """Waits for the end and returns the exit status; -SIGKILL if the resident process ended before."""
        if self.returncode is None:
            self.returncode = int(os.read(self._ended, 16) or -signal.SIGKILL)
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal to the process unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def serve() -> int:
    """Imports MODULES and forks a process for each request on standard input until its end; returns 0."""
    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # otherwise the garbage collector would copy the pages that the children share
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_end)
    running: dict[int, int] = {}  # process number -> the file that gets its exit status
    with socket.socket(fileno=os.dup(0)) as orders, selectors.DefaultSelector() as selector:
        selector.register(orders, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == wake:
                    os.read(wake, 512)
                    _reap(running)
                    continue
                message, files, _, _ = socket.recv_fds(orders, len(ASK), FILES)
                if not message:
                    return 0
                pid = _fork(files, running)
                orders.send(str(pid).encode())


def _reap(running: dict[int, int]) -> None:
    """Writes the exit status of each ended cell to the cell's file, and closes the file."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            file = running.pop(pid)
            try:
                os.write(file, str(os.waitstatus_to_exitcode(status)).encode())
            except BrokenPipeError:
                continue  # the worker has ended
            finally:
                os.close(file)


def _fork(files: Sequence[int], running: dict[int, int]) -> int:
    """Forks a cell's process with these files, and returns its number."""
    pid = os.fork()
    if pid == 0:
        _cell(files)
    for file in files[:3]:
        os.close(file)
    running[pid] = files[3]
    return pid


def _cell(files: Sequence[int]) -> None:
    """Runs a cell with the first three of `files` as its standard files; never returns."""
    from orchestrator.campaign import cell

    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for place, file in enumerate(files[:3]):
            os.dup2(file, place)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(place, "w", closefd=False) for place in (1, 2))
        status = cell.main()
    except BaseException:  # reported here, because the child must not return into its parent's loop
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(serve())
