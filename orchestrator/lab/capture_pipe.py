"""Runs the programs that process a capture's packets after tcpdump: zstd compresses them; ssh sends them to
another machine while tcpdump writes them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from capture.packed import PROGRAM, SUFFIX
from contract.plan import Capture
from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError, TimedOut
from orchestrator.lab.loop import Loop

END_NS = 20 * SECOND  # time limit for processing packets that are still in the pipes or on the way
CONNECT_S = 15
# noclobber (-C) makes the shell fail if the file exists, so that no file is overwritten.
RECEIVE = "umask 077; mkdir -p {place} && set -C && cat > {place}/{name}"


class Running:
    """A running program in a session of its own, whose standard error the loop reads until the program ends;
    then the loop calls `on_end`.
    """

    def __init__(
        self, loop: Loop, argv: Sequence[str], stdin: int, stdout: Any, on_end: Callable[[], None]
    ) -> None:
        self._loop, self._on_end, self._read = loop, on_end, b""
        self.ended = False
        self.process = subprocess.Popen(
            list(argv), stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stderr is not None
        self._stderr = self.process.stderr.fileno()
        loop.watch(self._stderr, self._readable)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        """The text that the program has written to its standard error so far."""
        return self._read.decode(errors="replace")

    @property
    def last_words(self) -> str:
        """The last three lines of the program's standard error, joined to one line."""
        return " / ".join(self.said.strip().splitlines()[-3:])

    def await_end(self, ns: int, what: str) -> None:
        """Waits until the program has ended; kills it and raises TimedOut if that takes more than `ns`."""
        try:
            self._loop.until(self._loop.clock.now_ns() + ns, f"{what} to end", lambda: self.ended)
        except TimedOut:
            self.process.kill()
            raise

    def _readable(self) -> None:
        if chunk := os.read(self._stderr, 4096):
            self._read += chunk
            return
        self._loop.unwatch(self._stderr)
        self.process.wait()
        self.ended = True
        self._on_end()


class Stage:
    """A running program that reads `input`; calls `on_end` with the program's last lines if it fails."""

    def __init__(
        self, loop: Loop, what: str, argv: Sequence[str], output: Any, on_end: Callable[[str], None]
    ) -> None:
        self._what, self._on_end = what, on_end
        try:
            self._running = Running(loop, argv, subprocess.PIPE, output, self._ended)
        except OSError as error:
            raise LabError(f"{what}: {argv[0]}: {error.strerror}; apt-get install it") from error
        assert self._running.process.stdin is not None
        self.input: IO[bytes] = self._running.process.stdin

    @property
    def pid(self) -> int:
        return self._running.pid

    def await_end(self) -> None:
        """Waits until the program has read and written all, after its input has ended; kills it and raises
        TimedOut if it does not end within 20 s. Raises LabError if it failed.
        """
        self._running.await_end(END_NS, self._what)
        if self._running.process.returncode:
            raise LabError(self._failure())

    def _failure(self) -> str:
        said = self._running.last_words or "without a word"
        return f"{self._what}: ended with status {self._running.process.returncode}: {said}"

    def _ended(self) -> None:
        if self._running.process.returncode:
            self._on_end(self._failure())


def pipe(loop: Loop, capture: Capture, file: Path, on_end: Callable[[str], None]) -> tuple[Any, list[Stage]]:
    """Starts the programs of a capture. Returns the file or the pipe to which tcpdump writes (the caller
    closes it), and the programs in the order in which packets pass them. `on_end` gets the last lines of a
    program that fails. Raises LabError if one cannot start.
    """
    stages: list[Stage] = []
    what = f"captures.{capture.name}"
    if capture.to:
        stages.append(
            Stage(loop, f"{what}: {capture.to}", sending(capture, file), subprocess.DEVNULL, on_end)
        )
        output: Any = stages[0].input
    else:
        output = file.open("wb")
    if capture.compress:
        stages.insert(0, Stage(loop, f"{what}: zstd", (PROGRAM, "-q", "-c"), output, on_end))
        output.close()  # zstd has its own copy of this descriptor
        output = stages[0].input
    return output, stages


def file_name(capture: Capture) -> str:
    """Returns the name of a capture's file."""
    return f"{capture.name}.pcap" + (SUFFIX if capture.compress else "")


def sending(capture: Capture, file: Path) -> list[str]:
    """Returns the ssh command that writes its input to LAB.RUN.FILE in the directory that a capture's `to`
    names on the other machine. `file` is the path that the capture would have in its run directory. ssh never
    prompts; the command in VNET_SSH replaces `ssh`.
    """
    url = urlsplit(capture.to)
    run = file.parent.parent
    name = f"{run.parent.name}.{run.name}.{file.name}"
    words = shlex.split(os.environ.get("VNET_SSH", "")) or ["ssh"]
    words += ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-o", "ServerAliveInterval=15"]
    words += ["-T", "-a", "-x", *(["-l", url.username] if url.username else [])]
    words += ["-p", str(url.port)] if url.port else []
    place = shlex.quote(url.path.rstrip("/") or "/")
    return [*words, "--", str(url.hostname), RECEIVE.format(place=place, name=shlex.quote(name))]
