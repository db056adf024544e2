"""Measures the cost of the nodes' sandbox: creates the same nodes with it and without it, in turns.

The benchmark starts its own launcher and sends requests directly (docs/contracts/launcher.md), because each
lab sends `sandbox` in `create` and no option removes it. It measures wall-clock seconds, CPU time of launcher
and nodes together, and the PSS of an agent; it takes the least of several turns.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import ROOT, as_root

NODES, TURNS, PSS_SAMPLES = 350, 5, 20
DISK_BYTES = 64 << 20
READY_S = 15.0
AGENT = ROOT / "target" / "release" / "vnet-agent"


@dataclass(frozen=True)
class Cost:
    """The cost of one turn: seconds to create and to end all nodes, CPU time of both, mean PSS
    of an agent.
    """

    up_s: float
    down_s: float
    cpu_s: float
    pss_bytes: float


class Launcher:
    """A launcher process; sends it one request at a time. SystemExit with the launcher's error if it refuses
    one.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "agent.sock"
        self.process = subprocess.Popen([str(AGENT), "launch", "--socket", str(path)])
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        deadline = time.monotonic() + READY_S
        while self._socket.connect_ex(str(path)) != 0:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"sandbox.py: {AGENT}: does not listen; run `make setup`")
            time.sleep(0.002)
        self._answers = self._socket.makefile("rb")

    def ask(self, **request: Any) -> dict[str, Any]:
        self._socket.sendall(json.dumps({"id": 1, **request}).encode() + b"\n")
        while True:  # events may come first
            answer: dict[str, Any] = json.loads(self._answers.readline() or b'{"id": 1, "error": "it ended"}')
            if answer.get("id") == 1:
                break
        if not answer.get("ok"):
            raise SystemExit(f"sandbox.py: launcher: {request['op']}: {answer.get('error')}")
        return answer


def pss_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def turn(count: int, contained: bool) -> Cost:
    """Starts a launcher that creates `count` nodes and ends them, and returns the cost."""
    prefix = f"bench-sandbox-{os.getpid()}"
    names = [f"n{number}" for number in range(count)]
    nodes = [
        {"name": n, "netns": f"{prefix}.{n}", "hostname": n, "cgroup_procs": [], "ipv6": False} for n in names
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as directory:
        logs = Path(directory) / "logs"
        logs.mkdir()
        sandbox = {"hidden": [directory], "logs": str(logs), "disk_bytes": DISK_BYTES} if contained else None
        launcher = Launcher(Path(directory))
        start = time.monotonic()
        pids = launcher.ask(op="create", core=None, nodes=nodes, sandbox=sandbox)["pids"]
        ready = time.monotonic()
        sizes = [pss_bytes(pids[name]) for name in names[:: max(1, count // PSS_SAMPLES)]]
        ending = time.monotonic()
        launcher.ask(op="quit")
        launcher.process.wait()
        ended = time.monotonic()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(ready - start, ended - ending, cpu, sum(sizes) / len(sizes))


def main() -> None:
    as_root()
    turns = [(turn(NODES, True), turn(NODES, False)) for _ in range(TURNS)]
    print(f"sandbox.py: {turns}", file=sys.stderr)

    def row(what: str, unit: str, field: str, scale: float = 1) -> dict[str, object]:
        ours, theirs = (min(getattr(pair[i], field) for pair in turns) for i in (0, 1))
        peer = f"the same without a sandbox, {theirs / scale:.3g} {unit}"
        return {"name": what, "value": ours / scale, "unit": unit, "peer": peer, "ratio": ours / theirs}

    rows = [
        row(f"{NODES} contained nodes made", "s", "up_s"),
        row(f"{NODES} contained nodes ended", "s", "down_s"),
        row("CPU time of both", "s", "cpu_s"),
        row("PSS of an idle agent", "MB", "pss_bytes", 1e6),
    ]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
