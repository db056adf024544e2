"""Measures `vnet plan` for a lab over many hosts: 1,000, 3,000 and 10,000 nodes on as many hosts as they
need.

The lab consists of sites of 100 nodes: a broker and its meters on a segment of their own, which a slow link
joins to the trunk, where the utility subscribes to all brokers. Each `vnet plan` is a process of its own; its
memory is its peak.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commands import VNET, failed

SITE = 100
PER_HOST = 334
SIZES = (1_000, 3_000, 10_000)
TURNS = 3
MOST_S = 10.0


def topology(nodes: int, hosts: int) -> str:
    sites = nodes // SITE
    lines = [f"name: paper-{nodes}", "hosts:"]
    lines += [
        f"  h{n}: {{machine: ssh://root@h{n}, address: 10.200.0.{n}, cores: 32, memory: 64 GB}}"
        for n in range(1, hosts + 1)
    ]
    lines += ["underlay: {mtu: 1500, delay: 100 us}", "segments:", "  trunk: {subnet: 10.0.0.0/14}"]
    lines += [f"  site{n}: {{}}" for n in range(1, sites + 1)]
    lines += ["nodes:"]
    listen = ", ".join(
        f"from{n}: {{mqtt: {{broker: broker{n}, subscribe: [{{topic: '#', qos: 1}}]}}}}"
        for n in range(1, sites + 1)
    )
    lines += [f"  utility: {{segment: trunk, software: {{{listen}}}}}"]
    lines += [
        f"  broker{n}: {{segment: site{n}, software: {{m: {{broker: mosquitto}}}}}}"
        for n in range(1, sites + 1)
    ]
    lines += ["groups:"]
    meters = "{broker: broker%d, publish: {topic: 'm/{index}', qos: 1, rate: 1 /s, rate_of: client}}"
    lines += [
        f"  s{n}m: {{count: {SITE - 1}, segment: site{n}, memory_limit: 64 MiB, "
        f"software: {{meter: {{mqtt: {meters % n}}}}}}}"
        for n in range(1, sites + 1)
    ]
    lines += ["links:"]
    lines += [
        f"  wan{n}: {{between: [site{n}, trunk], both: {{delay: 20 ms, rate: 10 Mbit/s}}}}"
        for n in range(1, sites + 1)
    ]
    lines += ["run: {ramp: 60 s, hold: 60 s, drain: 5 s}"]
    return "\n".join(lines) + "\n"


def planned(nodes: int, hosts: int) -> tuple[float, float, int]:
    """Returns the wall-clock seconds, the CPU seconds (least of TURNS each) and the largest memory in bytes
    of `vnet plan`.
    """
    found = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "paper.yaml"
        file.write_text(topology(nodes, hosts))
        for _ in range(TURNS):
            found.append(_once([str(VNET), "plan", str(file)]))
    return min(one[0] for one in found), min(one[1] for one in found), max(one[2] for one in found)


def _once(argv: list[str]) -> tuple[float, float, int]:
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        failed(tuple(argv), process.returncode, "what it said is above")
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--print", type=int, metavar="NODES", help="Only print the topology of so many nodes."
    )
    options = parser.parse_args()
    if options.print:
        print(topology(options.print, -(-options.print // PER_HOST)), end="")
        return
    found = {nodes: planned(nodes, -(-nodes // PER_HOST)) for nodes in SIZES}
    rows: list[tuple[str, float, str, str, float]] = []
    for nodes, (wall_s, cpu_s, memory) in found.items():
        few = found[SIZES[0]][1] * nodes / SIZES[0]
        rows.append((f"plan {nodes} nodes over hosts", wall_s, "s", f"{MOST_S:g} s allowed", MOST_S))
        rows.append((f"plan {nodes} nodes, CPU", cpu_s, "s", f"per node, {SIZES[0]} nodes (1: linear)", few))
        rows.append((f"plan {nodes} nodes, memory", memory / 1e6, "MB", "1 GB allowed", 1000.0))
    json.dump(
        [{"name": n, "value": v, "unit": u, "peer": p, "ratio": v / against} for n, v, u, p, against in rows],
        sys.stdout,
    )


main()
