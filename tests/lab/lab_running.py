"""Starts lab processes for tests, uses their control sockets, and asserts that nothing of a lab stays."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab_plans import AGENT, ROOT

from contract.codec import to_json
from contract.plan import Plan
from orchestrator import images
from orchestrator.lab import cleanup
from orchestrator.lab.multi_host.host_commands import Way, note

needs_light = pytest.mark.skipif(
    os.geteuid() != 0 or not AGENT.exists(), reason="needs root and target/release/vnet-agent (make setup)"
)


def vm_missing(image: str = "builtin") -> str | None:
    """Returns the reason why no virtual machine can run here; None if one can."""
    if os.geteuid() != 0 or not AGENT.exists():
        return "needs root and target/release/vnet-agent (make setup)"
    if importlib.util.find_spec("libvirt") is None or not Path("/usr/bin/qemu-system-x86_64").exists():
        return "needs libvirt and QEMU (images/packages.sh vm)"
    try:
        images.locate(image)
    except images.ImageError as error:
        return str(error)
    return None


needs_vm = pytest.mark.skipif(vm_missing() is not None, reason=str(vm_missing()))


def write_ways(plan: Plan, run_dir: Path, homes: Path) -> None:
    """Writes, for each host of the plan, the command that starts its part: here a process on this machine
    with a home directory of its own.
    """
    part = (sys.executable, "-s", "-m", "orchestrator.lab.multi_host.part")
    (run_dir / "raw").mkdir(parents=True, exist_ok=True)
    calls = {host.name: (*part, f"{homes}/{host.name}") for host in plan.hosts}
    note(run_dir / "raw", {name: Way("", call, (*call, "down")) for name, call in calls.items()})


class Running:
    """A lab process with its directories."""

    def __init__(
        self,
        plan: Plan,
        directory: Path,
        *options: str,
        driver: str = "light",
        state_root: Path | None = None,
    ) -> None:
        self.plan, self.run_dir = plan, directory / "run"
        # libvirt's sockets, whose paths must be short, lie below it; pytest's own directories are too deep.
        self._own_state = tempfile.TemporaryDirectory(prefix="vnet-state-")
        self.state_root = state_root or Path(self._own_state.name)
        Path(self._own_state.name).chmod(0o711)  # lets QEMU's account enter the directory
        self.state_dir = self.state_root / plan.lab
        if plan.hosts:
            write_ways(plan, self.run_dir, Path(self._own_state.name))
        file = directory / f"{plan.lab}.json"
        file.write_text(to_json(plan))
        command = [
            sys.executable,
            # the driver vm needs libvirt and jinja2, which `-S` would hide
            *([] if driver == "vm" else ["-S"]),
            "-s",
            "-m",
            "orchestrator.lab",
            str(file),
            "--run-dir",
            str(self.run_dir),
        ]
        command += ["--state-dir", str(self.state_dir), "--agent", str(AGENT), "--driver", driver, *options]
        self.progress, self.errors = directory / "progress.jsonl", directory / "stderr"
        # The file is opened separately from the readers': a seek moves the offset at which a child that
        # inherits the file writes.
        with self.progress.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
            )  # fmt: skip

    def finish(self, timeout: float = 60) -> int:
        return self.process.wait(timeout)

    @property
    def events(self) -> list[dict[str, Any]]:
        lines = self.progress.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def stderr(self) -> str:
        return self.errors.read_text()

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
        """Kills the lab process and removes everything of the lab, for fixtures."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        cleanup.destroy(self.plan.lab, self.state_root)
        self._own_state.cleanup()


class Control:
    """A blocking client of a control socket."""

    def __init__(self, running: Running, patience: float = 180) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(patience)
        self._socket.connect(str(running.state_dir / "control.sock"))
        self._lines = self._socket.makefile("r")
        self._last = 0

    def send(self, op: str, **fields: Any) -> int:
        self._last += 1
        self._socket.sendall(json.dumps({"id": self._last, "op": op, **fields}).encode() + b"\n")
        return self._last

    def answer(self, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Returns (the answer to request `number`, the events before it)."""
        events = []
        for line in self._lines:
            message = json.loads(line)
            if message.get("id") == number and "event" not in message:
                return message, events
            events.append(message)
        raise AssertionError("the lab closed the connection")

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.answer(self.send(op, **fields))[0]


@contextmanager
def served(plan: Plan, directory: Path, driver: str = "light") -> Iterator[Running]:
    """Yields a lab that serves; takes it down afterwards and asserts that nothing of it is left."""
    running = Running(plan, directory, driver=driver)
    try:
        running.await_event("phase", timeout=240, text="serving until `vnet down`")
        yield running
        assert Control(running).call("down")["ok"]
        assert running.finish() == 0
        assert running.leftovers() == []
    finally:
        running.close()


def until(timeout: float, subject: str, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + timeout
    while not probe():
        assert time.monotonic() < deadline, f"waited {timeout} s for {subject}"
        time.sleep(0.02)
