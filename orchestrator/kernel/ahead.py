"""Starts work before it is needed, to save wall-clock time: the probing of this kernel, the lab process, and
the import of the modules that reduce and report. The results of a run do not depend on this.

These CPU seconds move to an idle second core (two cores of 2026, three measurements each): 0.11 to 0.15 for
the trial of this kernel's qdiscs and links, 0.18 to 0.23 for the modules of the lab process, 1.6 for the
libraries that reduce and report, and 0.4 for those that only reduce.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.lab_command import LIGHT, environment
from orchestrator.lab.start_arguments import LARGEST, WAIT


@dataclass(frozen=True)
class Begun:
    """A lab process that was started early, and the socket at which it waits for its arguments."""

    process: subprocess.Popen[bytes]
    orders: socket.socket
    path: str  # PYTHONPATH of the process


_begun: list[Begun] = []  # contains at most one process


def look_ahead(kernel: str) -> None:
    """Starts to probe this machine's kernel in a thread and, for root, a lab process, while the modules that
    plan a lab load.

    Does nothing if `kernel` is neither "auto" nor "host".
    """

    def look() -> None:
        with suppress(OSError):  # a later reader reads the facts again, and reports the error
            host_facts()

    if kernel in ("auto", "host"):
        if os.geteuid() == 0:  # only root makes labs in this kernel
            begin()
        threading.Thread(target=look, daemon=True).start()


def begin() -> None:
    """Starts a lab process that waits for its arguments, unless one waits already; ignores errors, since the
    start of the lab reports them.

    The process waits for arguments, environment and open files (orchestrator/lab/start_arguments.py). If none
    arrive, it ends with this process.
    """
    if _begun:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = environment(os.environ, {}, {})
    with theirs, suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, *LIGHT, WAIT],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
            cwd="/",
        )
        _begun.append(Begun(process, ours, env["PYTHONPATH"]))


def take(
    argv: Sequence[str], env: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
) -> subprocess.Popen[bytes] | None:
    """Passes `argv`, environment and output files to the process that `begin` started and returns it. Returns
    None if there is none, or if `argv` does not begin as that process does (this Python with LIGHT).

    Also ends the process and returns None if the message is too long, if the process has ended already, or if
    it does not find the code of plug-ins that the lab needs.
    """
    start = [sys.executable, *LIGHT]
    if not _begun or list(argv[: len(start)]) != start:
        return None
    begun = _begun.pop()
    message = json.dumps({"argv": list(argv[len(start) :]), "env": dict(env)}).encode()
    with begun.orders, suppress(OSError):  # the process has ended; the next user of it reports the error
        if len(message) < LARGEST and begun.path == env.get("PYTHONPATH"):
            socket.send_fds(begun.orders, [message], [output.fileno(), errors.fileno()])
            return begun.process
    begun.process.wait()
    return None


def load_reports(*, page: bool = True) -> None:
    """Imports the modules that reduce a run and, with `page`, those that report on it; then also loads the
    drawing library, whose errors it ignores. Raises the error of an import.

    The import takes a second of a core, which would disturb a scenario, but not the end of a lab.
    """
    importlib.import_module("capture.reduce")
    if not page:
        return
    importlib.import_module("reports.report")
    # An error here (even a panic of a library) occurs again where the result is needed, and is reported
    # there.
    with suppress(BaseException):
        importlib.import_module("reports.figures.drawing").wake()
