"""A lab process that outlives its starter: standard output in a file, followed by whoever wants to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from orchestrator.kernel.process import send
from orchestrator.kernel.protocol import Launch
from orchestrator.lab.state import owned

CODE_ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05


class DetachedLab:
    """Handle of a started lab: the process that we started, and the file that its output goes to."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        output: IO[bytes],
        control: Path,
        kill: Callable[[int], None] | None = None,
    ) -> None:
        self.process = process
        self.identity = owned("lab", process.pid)
        self._output = output
        self._control = control
        self._kill = kill

    @property
    def control(self) -> Path:
        """Socket for requests; appears when the lab serves."""
        return self._control

    def events(self) -> Iterator[dict[str, Any]]:
        """The JSON lines as they come; a line that is no JSON object arrives as `{"event": "text", ...}`."""
        partial = b""
        while True:
            ended = self.process.poll() is not None  # before the read: nothing is written after it
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
        """Exit status, 128 + n for signal n; TimeoutError after `timeout_s`."""
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the lab process {self.process.pid} still runs after {timeout_s} s") from None
        return status if status >= 0 else 128 - status

    def interrupt(self) -> None:
        """SIGINT: tear down, keep what was measured."""
        send(self.identity, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, to everything that the kernel consists of."""
        send(self.identity, signal.SIGKILL)
        if self._kill is not None:
            self._kill(self.process.pid)
        self.process.wait()


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
    log: str,
    env: Mapping[str, str],
    lifeline: bool,
    kill: Callable[[int], None] | None = None,
) -> DetachedLab:
    """Start `argv` in a session of its own; output to raw/progress.jsonl, errors to raw/`log` of `run_dir`.

    With `lifeline`, its standard input is a pipe that only this process holds: it ends when we are gone.
    """
    raw = run_dir / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    with (raw / "progress.jsonl").open("wb") as output, (raw / log).open("ab") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=dict(env),
            start_new_session=True,
            cwd="/",
        )
    reader = (raw / "progress.jsonl").open("rb", buffering=0)
    return DetachedLab(process, reader, control, kill)


def lab_arguments(launch: Launch, state_dir: Path, agent: Path, prefix: str = "") -> list[str]:
    """Arguments of `python -m orchestrator.lab`; `prefix` stands before paths under /host in a guest."""
    arguments = ["-S", "-s", "-m", "orchestrator.lab", str(launch.run_dir / "plan.json")]
    arguments += [
        "--run-dir",
        str(launch.run_dir),
        "--state-dir",
        str(state_dir),
        "--agent",
        prefix + str(agent),
    ]
    return arguments + ["--scenario"] * launch.scenario + ["--keep"] * launch.keep


def lab_environment(
    base: Mapping[str, str], kernel: Mapping[str, str], machine: Mapping[str, Any]
) -> dict[str, str]:
    """What the lab process finds in its environment (docs/contracts.md)."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept = {name: base[name] for name in ("HOME", "TZ", "TERM", "LANG") if name in base}
    return kept | {
        "PATH": path,
        "PYTHONPATH": os.fspath(CODE_ROOT),
        "VNET_KERNEL": json.dumps(dict(kernel)),
        "VNET_MACHINE": json.dumps(dict(machine)),
    }
