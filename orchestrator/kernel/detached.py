"""Starts and follows a lab process that outlives its starter: its standard output is a file that any process
can read.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from orchestrator.kernel import ahead
from orchestrator.kernel.forked import Forked
from orchestrator.kernel.process import send
from orchestrator.kernel.protocol import KernelError
from orchestrator.lab import dead
from orchestrator.lab.state import Owned

POLL_S = 0.02
LOG_LINES = 20
SOCKET_PATH_MAX = 107  # characters of sun_path in unix(7), without the zero at the end


class DetachedLab:
    """Handle of a started lab: its process and the file with its output."""

    def __init__(
        self,
        process: subprocess.Popen[bytes] | Forked,
        identity: Owned,
        output: IO[bytes],
        control: Path,
        logs: Sequence[Path],
        kill: Callable[[int], None] | None = None,
    ) -> None:
        self.process = process
        self.identity = identity
        self._output = output
        self._control = control
        self._kill = kill
        self._logs = logs

    @property
    def control(self) -> Path:
        """Path of the lab's control socket, which exists once the lab serves requests."""
        return self._control

    def events(self) -> Iterator[dict[str, Any]]:
        """Yields the JSON objects of the lab's output lines as they arrive; a line that is no JSON object
        becomes `{"event": "text", ...}`.

        The lab writes one event `end`; if its process died without that, this adds `error` and `end`.
        """
        finished = False
        for event in self._lines():
            finished = finished or event.get("event") == "end"
            yield event
        if not finished:
            status = self.wait()
            yield {"event": "error", "text": unexpected_end(status, self._logs)}
            yield {"event": "end", "status": status or 1}

    def _lines(self) -> Iterator[dict[str, Any]]:
        partial = b""
        while True:
            # This check comes before the read, because the process writes nothing after its end.
            ended = self.process.poll() is not None
            data = self._output.read()
            *lines, partial = (partial + data).split(b"\n")
            yield from (_event(line) for line in lines if line.strip())
            if ended and not data:
                break
            if not data:
                time.sleep(POLL_S)
        if partial.strip():
            yield _event(partial)

    def wait(self, timeout_s: float | None = None) -> int:
        """Returns the exit status of the lab process (128 + n for signal n); raises TimeoutError after
        `timeout_s`.
        """
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the lab process {self.process.pid} still runs after {timeout_s} s") from None
        return status if status >= 0 else 128 - status

    def interrupt(self) -> None:
        """Sends SIGINT to the lab process, which then tears the lab down and keeps its measurements."""
        send(self.identity, signal.SIGINT)

    def kill(self) -> None:
        """Sends SIGKILL to the lab process, ends the other processes of its kernel if there are any, and
        waits.
        """
        send(self.identity, signal.SIGKILL)
        if self._kill is not None:
            self._kill(self.process.pid)
        self.process.wait()


def control_socket(state_dir: Path) -> Path:
    """Returns the path of the lab's control socket; raises KernelError if it is too long for a
    Unix socket.
    """
    control = state_dir / "control.sock"
    if len(str(control)) > SOCKET_PATH_MAX:
        raise KernelError(
            f"{control}: has {len(str(control))} characters, and a Unix socket's name at most "
            f"{SOCKET_PATH_MAX}; set VNET_STATE_DIR to a shorter path"
        )
    return control


def unexpected_end(status: int, logs: Sequence[Path]) -> str:
    """Returns the error text for a lab process that ended without reporting an error: its status and the last
    lines of its logs.
    """
    words = [f"the lab process ended with status {status} before its work was done"]
    for log in logs:
        if log.exists() and (text := log.read_text(errors="replace").rstrip()):
            words += [f"{log} ends with", *(f"  {line}" for line in text.splitlines()[-LOG_LINES:])]
    return "\n".join(words)


def _event(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"event": "text", "text": line.decode(errors="replace")}


def spawn(
    argv: Sequence[str],
    run_dir: Path,
    control: Path,
    *,
    logs: Sequence[str],
    env: Mapping[str, str],
    lifeline: bool,
    kill: Callable[[int], None] | None = None,
) -> DetachedLab:
    """Starts `argv` in a new session, or without `lifeline` passes it to the process that was started early
    if there is one; records the process in the run directory and returns its handle. Output goes to
    raw/progress.jsonl, errors to the first of `logs`.

    With `lifeline`, the standard input is a pipe that only this process holds, so that the lab ends with
    this process. `kill` ends the other processes of the lab's kernel.
    """
    raw = run_dir / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    with (raw / "progress.jsonl").open("wb") as output, (raw / logs[0]).open("ab") as errors:
        waiting = None if lifeline else ahead.take(argv, env, output, errors)
        process = waiting or subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=dict(env),
            start_new_session=True,
            cwd="/",
        )
    identity = dead.note_owner(run_dir, process.pid)
    reader = (raw / "progress.jsonl").open("rb", buffering=0)
    return DetachedLab(process, identity, reader, control, [raw / log for log in logs], kill)


def fork(
    work: Callable[[], int],
    run_dir: Path,
    control: Path,
    *,
    logs: Sequence[str],
    kill: Callable[[int], None] | None = None,
) -> DetachedLab:
    """Forks a lab process that runs `work` and ends with this process; otherwise does the same as `spawn`."""
    raw = run_dir / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    with (raw / "progress.jsonl").open("wb") as output, (raw / logs[0]).open("ab") as errors:
        process = Forked(work, output, errors)
    identity = dead.note_owner(run_dir, process.pid)
    reader = (raw / "progress.jsonl").open("rb", buffering=0)
    return DetachedLab(process, identity, reader, control, [raw / log for log in logs], kill)
