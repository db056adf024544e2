"""Measures bring-up and teardown of light nodes on the host kernel, against Mininet (LinuxBridge) of the same
size.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path

from commands import VNET, as_root, reads, timed

BENCH = Path(__file__).parent
RUNS = 3


def vnet(count: int) -> tuple[float, float]:
    """Returns the seconds of the whole `vnet up`, until the agents are ready, and of the whole
    `vnet down`.
    """
    lab = f"bench-{os.getpid()}"
    up = timed(
        str(VNET),
        "up",
        str(BENCH / "nodes.yaml"),
        "-p",
        f"nodes={count}",
        "--lab",
        lab,
        "--kernel",
        "host",
    )
    return up, timed(str(VNET), "down", lab)


def mininet(count: int) -> tuple[float, float]:
    """Returns the seconds of Mininet's start() and stop(), without the time in which its Python interpreter
    starts.
    """
    peer = ("/usr/bin/python3", str(BENCH / "mininet_peer.py"))
    times = json.loads(reads("unshare", "--net", *peer, str(count)))
    return times["up_s"], times["down_s"]


def row(name: str, value: float, peer: str, peer_value: float, unit: str = "s") -> dict[str, object]:
    return {"name": name, "value": value, "unit": unit, "peer": peer, "ratio": value / peer_value}


def main() -> None:
    as_root()
    pairs = [(vnet(350), mininet(350)) for _ in range(RUNS)]
    ours_up, ours_down = (statistics.median(p[0][i] for p in pairs) for i in (0, 1))
    peer_up, peer_down = (statistics.median(p[1][i] for p in pairs) for i in (0, 1))
    few, many = vnet(50)[0], vnet(1000)[0]
    rows = [
        row("350 light nodes up", ours_up, f"Mininet LinuxBridge, {peer_up:.2f} s", peer_up),
        row("350 light nodes down", ours_down, f"Mininet LinuxBridge, {peer_down:.2f} s", peer_down),
        row("time per node, 1000 nodes", many / 1000, "per node, 350 nodes (1: linear)", ours_up / 350),
        row("50 nodes up", few, "350 nodes up", ours_up),
    ]
    json.dump(rows, sys.stdout)


main()
