"""Starts lab processes for tests, talks to their control sockets, and asserts that nothing stays."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lab_plans import AGENT, ROOT

from orchestrator.lab import cleanup
from orchestrator.plan.codec import to_json
from orchestrator.plan.model import Plan

needs_light = pytest.mark.skipif(
    os.geteuid() != 0 or not AGENT.exists(), reason="needs root and target/release/vnet-agent (make setup)"
)


class Running:
    """One lab process with its directories."""

    def __init__(self, plan: Plan, directory: Path, *options: str, driver: str = "light") -> None:
        self.plan, self.run_dir = plan, directory / "run"
        self.state_root = directory / "state"
        self.state_dir = self.state_root / plan.lab
        file = directory / f"{plan.lab}.json"
        file.write_text(to_json(plan))
        command = [
            sys.executable,
            "-S",
            "-s",
            "-m",
            "orchestrator.lab",
            str(file),
            "--run-dir",
            str(self.run_dir),
        ]
        command += ["--state-dir", str(self.state_dir), "--agent", str(AGENT), "--driver", driver, *options]
        self.output = (directory / "progress.jsonl").open("w+")
        self.errors = (directory / "stderr").open("w+")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.errors,
        )  # fmt: skip

    def finish(self, timeout: float = 60) -> int:
        return self.process.wait(timeout)

    @property
    def events(self) -> list[dict[str, Any]]:
        self.output.seek(0)
        return [json.loads(line) for line in self.output if line.endswith("\n")]

    @property
    def stderr(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    @property
    def manifest(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.run_dir / "manifest.json").read_text())
        return data

    def seen(self, name: str, **fields: Any) -> bool:
        return any(e["event"] == name and fields.items() <= e.items() for e in self.events)

    def await_event(self, name: str, timeout: float = 30, **fields: Any) -> None:
        until(
            timeout,
            f"event {name} {fields}",
            lambda: self.seen(name, **fields) or self.process.poll() is not None,
        )
        assert self.seen(name, **fields), (self.events[-5:], self.stderr)

    def leftovers(self) -> list[str]:
        return cleanup.leftovers(self.plan.lab, self.state_root)

    def close(self) -> None:
        """For fixtures: end it, take all away, say what had to be taken."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        cleanup.destroy(self.plan.lab, self.state_root)
        self.output.close()
        self.errors.close()


class Control:
    """A blocking client of a control socket."""

    def __init__(self, running: Running) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(running.state_dir / "control.sock"))
        self._lines = self._socket.makefile("r")
        self._last = 0

    def send(self, op: str, **fields: Any) -> int:
        self._last += 1
        self._socket.sendall(json.dumps({"id": self._last, "op": op, **fields}).encode() + b"\n")
        return self._last

    def answer(self, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """(answer, events before it) of one request."""
        events = []
        for line in self._lines:
            message = json.loads(line)
            if message.get("id") == number and "event" not in message:
                return message, events
            events.append(message)
        raise AssertionError("the lab closed the connection")

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.answer(self.send(op, **fields))[0]


def until(timeout: float, subject: str, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + timeout
    while not probe():
        assert time.monotonic() < deadline, f"waited {timeout} s for {subject}"
        time.sleep(0.02)
