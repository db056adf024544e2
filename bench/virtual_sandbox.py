"""Measures the cost of the nodes' sandbox in virtual time: the same run with it and without it, in turns.

No option leaves the sandbox out, so the runs without it use a copy of this tree with one line changed. It
measures the CPU time of the whole `vnet run` without its reduction, and the wall-clock time, which other load
of the machine disturbs more; it takes the least of several turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from commands import CANNOT, ROOT, as_root, failed, left_out

from orchestrator.lab import cgroup

TOPOLOGY = ROOT / "topologies" / "mqtt-many-to-one.yaml"
PARAMETERS = ("clients=100", "hold=60s", "connect_interval=20ms")
TURNS = 3
DRIVER, WITH, WITHOUT = Path("orchestrator/lab/drivers/light.py"), "inside = self._sandbox()", "inside = None"
PARTS = ("orchestrator", "capture", "contract", "reports", "vnet", "target/release")
USAGE = {1: "cpuacct.usage", 2: "cpu.stat"}


@dataclass(frozen=True)
class Turn:
    """The CPU time of one run, and its wall-clock time."""

    cpu_s: float
    wall_s: float


def without_sandbox(place: Path) -> Path:
    """Returns a copy of the program that creates nodes without a sandbox, with the launcher's own rights."""
    for part in PARTS:
        shutil.copytree(ROOT / part, place / part)
    text = (place / DRIVER).read_text()
    if (found := text.count(WITH)) != 1:
        raise SystemExit(f"virtual_sandbox.py: {DRIVER}: has `{WITH}` {found} times, not once")
    (place / DRIVER).write_text(text.replace(WITH, WITHOUT))
    return place


def turn(code: Path) -> Turn:
    """Runs this copy of the code once, in a control group of its own that counts its CPU time."""
    machine = cgroup.this_machine()
    (root,) = machine.roots(("cpuacct",))
    group = root / f"bench-sandbox-{os.getpid()}"
    with tempfile.TemporaryDirectory() as out:
        words = ["run", str(TOPOLOGY), "--time", "virtual", "--raw", "--results", out]
        words += [word for parameter in PARAMETERS for word in ("-p", parameter)]
        vnet = [sys.executable, "-m", "orchestrator.cli.main", *words]
        entered = f'echo $$ > {group}/cgroup.procs; exec "$@"'
        group.mkdir()
        try:
            start = time.monotonic()
            status = subprocess.run(
                ["sh", "-ec", entered, "sh", *vnet],
                stdout=sys.stderr,
                env={**os.environ, "PYTHONPATH": str(code)},
            ).returncode
            wall = time.monotonic() - start
            used = (group / USAGE[machine.version]).read_text().split()
        finally:
            group.rmdir()
    if status == CANNOT:
        left_out("vnet says above what this machine lacks")
    if status != 0:
        failed(tuple(vnet), status, "what it said is above")
    return Turn(int(used[0]) / 1e9 if machine.version == 1 else int(used[1]) / 1e6, wall)


def main() -> None:
    as_root()
    with tempfile.TemporaryDirectory() as place:
        free = without_sandbox(Path(place))
        turn(free)  # not counted: compiles the copied modules
        turns = [(turn(ROOT), turn(free)) for _ in range(TURNS)]
    print(f"virtual_sandbox.py: {turns}", file=sys.stderr)

    def row(what: str, field: str) -> dict[str, object]:
        ours, theirs = (min(getattr(pair[i], field) for pair in turns) for i in (0, 1))
        peer = f"the same without a sandbox, {theirs:.3g} s"
        return {
            "name": f"virtual: sandbox, {what}",
            "value": ours,
            "unit": "s",
            "peer": peer,
            "ratio": ours / theirs,
        }

    json.dump([row("CPU time of a run", "cpu_s"), row("its time on the clock", "wall_s")], sys.stdout)


if __name__ == "__main__":
    main()
