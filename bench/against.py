"""Compares the CPU time of this checkout with another's, in turns: of a bring-up and of whole runs in virtual
time, and of a run of 350 clients on the machine's own kernel.

    python bench/against.py CHECKOUT [--pairs N] [--case PART] [--out FILE]

CHECKOUT is a directory of another commit in which `make setup kernel` has run; each of the two runs the
kernel that its own sources make, and both the cases of this commit. Each pair is a run of both,
one after the other; the two take turns at being first. The benchmark prints the ratio of this checkout's CPU
time to the other's, as the geometric mean of the pairs with its 95 % interval (Student's, of the logarithms),
and the ratio of the least of each.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commands import ROOT, as_root, failed, reads
from scipy.special import stdtrit

from orchestrator.lab import cgroup

END_S = 30.0
USAGE = {1: "cpuacct.usage", 2: "cpu.stat"}
VIRTUAL = ("--time", "virtual")
SCENARIO = "topologies/mqtt-many-to-one.yaml"
# The arguments of `vnet run` for each case. `--raw` leaves out tables and page.
CASES = {
    "bring-up: a pair": ("topologies/pair.yaml", *VIRTUAL, "-p", "hold=1s", "--raw"),
    "a whole run: 3 nodes, 10 s": (SCENARIO, *VIRTUAL, "-p", "clients=1", "-p", "hold=10s"),
    "a whole run: 20 clients, 10 s": (
        *(SCENARIO, *VIRTUAL, "-p", "clients=20", "-p", "hold=10s", "-p", "connect_interval=50ms"),
    ),
    "a whole run: 350 clients, 155 s": (SCENARIO, *VIRTUAL, "-p", "clients=350", "-p", "hold=85s"),
    "a run without tables: 350 clients, 155 s": (
        *(SCENARIO, *VIRTUAL, "-p", "clients=350", "-p", "hold=85s", "--raw"),
    ),
    "a whole run in real time: 350 clients, 17 s": ("bench/mqtt.yaml", "--kernel", "host"),
}


@dataclass(frozen=True)
class Turn:
    """The CPU time of one run with all its processes, and its wall-clock time."""

    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Ratio:
    """The CPU time of this checkout divided by the other's: mean, interval, and the smallest time here
    divided by the smallest there.
    """

    mean: float
    low: float
    high: float
    least: float


@cache
def kernel_of(checkout: Path) -> str:
    """Returns the path of the lab kernel that a checkout's own sources make, the last line that build.sh
    prints.
    """
    last = reads(str(checkout / "images" / "kernel" / "build.sh")).splitlines()[-1]
    return last.removeprefix("kernel: ").rpartition(" (")[0]


def turn(checkout: Path, words: Sequence[str]) -> Turn:
    """Runs a checkout once, in a control group of its own that counts its CPU time."""
    machine = cgroup.this_machine()
    (root,) = machine.roots(("cpuacct",))
    group = root / f"bench-against-{os.getpid()}"
    with tempfile.TemporaryDirectory() as place:
        vnet = [str(checkout / ".venv/bin/vnet"), "run", *words, "--out", f"{place}/out"]
        group.mkdir()
        try:
            start = time.monotonic()
            status = subprocess.run(
                ["sh", "-ec", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *vnet],
                stdout=sys.stderr,
                cwd=checkout,
                env={
                    **os.environ,
                    "VNET_STATE_DIR": f"{place}/state",
                    "VNET_UML_KERNEL": kernel_of(checkout),
                },
            ).returncode
            wall = time.monotonic() - start
            used = (group / USAGE[machine.version]).read_text().split()
        finally:
            _remove(group)
    if status != 0:
        failed(tuple(vnet), status, "what it said is above")
    return Turn(int(used[0]) / 1e9 if machine.version == 1 else int(used[1]) / 1e6, wall)


def _remove(group: Path) -> None:
    """Removes the control group when its last processes have ended, or fails after END_S seconds."""
    until = time.monotonic() + END_S
    while (group / "cgroup.procs").read_text() and time.monotonic() < until:
        time.sleep(0.1)
    group.rmdir()


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Returns the ratio with its interval, from at least two pairs (this checkout, the other)."""
    logs = [math.log(mine / theirs) for mine, theirs in pairs]
    mean = statistics.fmean(logs)
    half = stdtrit(len(logs) - 1, 0.975) * statistics.stdev(logs) / math.sqrt(len(logs))
    least = [min(one) for one in zip(*pairs, strict=True)]
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), least[0] / least[1])


def compared(other: Path, words: Sequence[str], pairs: int) -> list[tuple[Turn, Turn]]:
    """Returns the turns of this checkout and of the other in pairs. Both run once before, so that their
    archives exist, and all their modules are compiled: a run whose environment forbids Python to keep
    bytecode (PYTHONDONTWRITEBYTECODE) would otherwise compile each changed module again.
    """
    for checkout in (ROOT, other):
        packages = [str(one.parent) for one in checkout.glob("*/__init__.py")]
        reads(str(checkout / ".venv/bin/python"), "-m", "compileall", "-q", *packages)
        turn(checkout, words)
    found = []
    for number in range(pairs):
        order = (ROOT, other) if number % 2 == 0 else (other, ROOT)
        took = {checkout: turn(checkout, words) for checkout in order}
        found.append((took[ROOT], took[other]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--case", default="", help="only the cases whose names contain this")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    as_root()
    rows = []
    for name, words in ((name, words) for name, words in CASES.items() if options.case in name):
        turns = compared(options.checkout.resolve(), words, options.pairs)
        for what in ("cpu_s", "wall_s"):
            found = ratio([(getattr(mine, what), getattr(theirs, what)) for mine, theirs in turns])
            medians = [
                statistics.median(getattr(one, what) for one in side) for side in zip(*turns, strict=True)
            ]
            print(
                f"{name}, {what}: {medians[0]:.2f} against {medians[1]:.2f} s, ratio {found.mean:.3f} "
                f"({found.low:.3f} to {found.high:.3f}), of the least {found.least:.3f}",
                flush=True,
            )
            rows.append({"name": name, "what": what, **vars(found), "turns": len(turns)})
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
