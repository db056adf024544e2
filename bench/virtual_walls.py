"""What containing light nodes costs in virtual time: the same run with their walls and without, in turns.

Walls cannot be left out by anything that a user can reach (walls.py), so what runs without them is a copy of
this tree in which one line asks for none. CPU time of the whole `vnet run` without its reduction, and the
clock, on which more of what else the machine does is seen; the least of several turns each.
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
DRIVER, ASKS, NONE = Path("orchestrator/lab/drivers/light.py"), "inside = self._walls()", "inside = None"
PARTS = ("orchestrator", "capture", "reports", "vnet", "target/release")
USAGE = {1: "cpuacct.usage", 2: "cpu.stat"}


@dataclass(frozen=True)
class Turn:
    """CPU time of one run, and its time on the clock."""

    cpu_s: float
    wall_s: float


def unwalled(place: Path) -> Path:
    """A copy of the program whose nodes are as free as their launcher."""
    for part in PARTS:
        shutil.copytree(ROOT / part, place / part)
    text = (place / DRIVER).read_text()
    if (found := text.count(ASKS)) != 1:
        raise SystemExit(f"virtual_walls.py: {DRIVER}: `{ASKS}` stands there {found} times, not once")
    (place / DRIVER).write_text(text.replace(ASKS, NONE))
    return place


def turn(code: Path) -> Turn:
    """One run of that code, in a control group of its own that counts its CPU time."""
    machine = cgroup.this_machine()
    (root,) = machine.roots(("cpuacct",))
    group = root / f"bench-walls-{os.getpid()}"
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
        free = unwalled(Path(place))
        turn(free)  # compiles what was copied
        turns = [(turn(ROOT), turn(free)) for _ in range(TURNS)]
    print(f"virtual_walls.py: {turns}", file=sys.stderr)

    def row(what: str, field: str) -> dict[str, object]:
        ours, theirs = (min(getattr(pair[i], field) for pair in turns) for i in (0, 1))
        peer = f"the same without walls, {theirs:.3g} s"
        return {
            "name": f"virtual: walls, {what}",
            "value": ours,
            "unit": "s",
            "peer": peer,
            "ratio": ours / theirs,
        }

    json.dump([row("CPU time of a run", "cpu_s"), row("its time on the clock", "wall_s")], sys.stdout)


if __name__ == "__main__":
    main()
