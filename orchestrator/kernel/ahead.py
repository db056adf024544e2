"""Everything that is begun before it is needed, to save time on the clock; a run is the same without it.

What each moves off the clock where a second core is idle, in CPU seconds on two cores of 2026 (three
measurements each): the trial of this kernel's qdiscs and links 0.11 to 0.15, the modules of the lab process
0.18 to 0.23, the libraries that reduce and report 1.6.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.lab_command import LIGHT, environment
from orchestrator.lab.start_arguments import LARGEST, WAIT


@dataclass(frozen=True)
class Begun:
    """The process, and the socket that it waits at."""

    process: subprocess.Popen[bytes]
    orders: socket.socket


_begun: list[Begun] = []  # at most one


def look_ahead(kernel: str) -> None:
    """Start to probe this machine's kernel, and the lab process, while the modules that plan a lab load."""

    def look() -> None:
        with suppress(OSError):  # whoever needs the facts reads them again, and reports the error
            host_facts()

    if kernel in ("auto", "host"):
        if os.geteuid() == 0:  # only root makes labs in this kernel
            begin()
        threading.Thread(target=look, daemon=True).start()


def begin() -> None:
    """Starts a lab process, unless one waits already; ignores errors, which the start of the lab reports.

    It waits for its arguments, environment and open files (orchestrator/lab/start_arguments.py). If none
    arrive, it ends with this process.
    """
    if _begun:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, *LIGHT, WAIT],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(os.environ, {}, {}),
            start_new_session=True,
            cwd="/",
        )
        _begun.append(Begun(process, ours))


def take(
    argv: Sequence[str], env: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
) -> subprocess.Popen[bytes] | None:
    """Passes `argv` to the waiting process and returns it; None if none waits for these arguments."""
    start = [sys.executable, *LIGHT]
    if not _begun or list(argv[: len(start)]) != start:
        return None
    begun = _begun.pop()
    message = json.dumps({"argv": list(argv[len(start) :]), "env": dict(env)}).encode()
    with begun.orders, suppress(OSError):  # it has ended; the next process reports the error
        if len(message) < LARGEST:
            socket.send_fds(begun.orders, [message], [output.fileno(), errors.fileno()])
            return begun.process
    begun.process.wait()
    return None


class Loading:
    """`observe`; when the load has ended, and the lab collects and tears down, what reduces a run and reports
    on it begins to be loaded: that takes a second of a core, which a scenario would notice.
    """

    def __init__(self, observe: Callable[[dict[str, Any]], None]) -> None:
        self._observe = observe
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        if event.get("phase") == "collect" and self._thread is None:
            self._thread = threading.Thread(target=self._load)
            self._thread.start()
        self._observe(event)

    def join(self) -> None:
        """Waits for the thread: two threads that import the same modules may each get a half-loaded one."""
        if self._thread is not None:
            self._thread.join()

    def check(self) -> None:
        """Raises the error of loading, since a second import of a half-loaded library raises another one."""
        if self._failure is not None:
            raise self._failure

    def _load(self) -> None:
        try:
            for name in ("capture.reduce", "reports.report"):
                importlib.import_module(name)
        except BaseException as failure:
            self._failure = failure
            return
        # An error here (a panic of a library, too) occurs again where its result is needed: reported there.
        with suppress(BaseException):
            importlib.import_module("reports.figures.drawing").wake()
