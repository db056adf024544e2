"""Measures whether the time of bring-up grows linearly, and the memory of a node: thousands of light nodes on
a dozen bridges against 350.

`make bench` leaves it out, because 10,000 nodes take the whole machine for minutes. Run it by
`.venv/bin/python bench/run.py scale.py`, or `bench/scale.py --nodes N`. The memory is the decrease of the
machine's available memory, so other work on the machine disturbs it, most of all with few nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from commands import VNET, as_root

SEGMENTS = 12
FEW, MANY = 350, 10_000
LONGEST_S = 600  # longest time of one command; after it the benchmark takes the lab down and fails


@dataclass(frozen=True)
class Cost:
    """The number of nodes, the seconds of the whole `vnet up` and `vnet down`, and the decrease of the
    machine's available memory.
    """

    nodes: int
    up_s: float
    down_s: float
    memory_bytes: int


def available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def measure(nodes: int) -> Cost:
    each, lab = round(nodes / SEGMENTS), f"scale-{os.getpid()}"
    file = str(Path(__file__).parent / "segments.yaml")
    before, start = available_bytes(), time.monotonic()
    try:
        command("up", file, "-p", f"nodes={each}", "--lab", lab, "--kernel", "host")
        up_s, used = time.monotonic() - start, before - available_bytes()
    finally:
        start = time.monotonic()
        command("down", lab)
    return Cost(each * SEGMENTS, up_s, time.monotonic() - start, used)


def command(*argv: str) -> None:
    try:
        done = subprocess.run([str(VNET), *argv], stdout=sys.stderr, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"scale.py: vnet {argv[0]}: not done after {LONGEST_S} s") from None
    if done.returncode != 0:
        raise SystemExit(f"scale.py: vnet {argv[0]}: status {done.returncode}; it says why above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=MANY)
    options = parser.parse_args()
    as_root()
    few, many = measure(FEW), measure(options.nodes)
    per_node = f"per node, {few.nodes} nodes (1: linear)"
    rows = [
        (f"{many.nodes} light nodes up", many.up_s, "s", per_node, many.nodes * few.up_s / few.nodes),
        (f"{many.nodes} light nodes down", many.down_s, "s", per_node, many.nodes * few.down_s / few.nodes),
        ("memory of a node", many.memory_bytes / many.nodes / 1e6, "MB", "1 MB reckoned", 1.0),
    ]
    json.dump(
        [{"name": n, "value": v, "unit": u, "peer": p, "ratio": v / against} for n, v, u, p, against in rows],
        sys.stdout,
    )


main()
