"""Measures the cost of one system call of a node, the source of virtual time's cost model.

Runs scenario 1 without impairments on the host kernel (root) and counts, with `perf stat` in the hold, system
calls and CPU time of broker, subscriber and some publishers. CPU time / system calls = the cost of one call
with the computing that goes with it. Prints a table; the medians over QoS levels and turns come last.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from commands import VNET, failed, wait_for_hold

from orchestrator.lab import cgroup

TOPOLOGY = Path(__file__).with_suffix(".yaml")
COUNTERS = "raw_syscalls:sys_enter,task-clock"
ROLES = {
    "broker": ["broker"],
    "subscriber": ["subscriber"],
    "publishers": [f"client{i}" for i in range(1, 41)],
}
Cost = dict[str, tuple[int, float]]  # role -> system calls, CPU ns


def processes(lab: str, nodes: list[str]) -> list[str]:
    """Returns the process ids of the nodes, from their control groups."""
    mount = cgroup.this_machine().mounts["cpuacct"]
    files = [mount / "vnet" / lab / node / "cgroup.procs" for node in nodes]
    return [pid for file in files for pid in file.read_text().split()]


def count(pids: list[str], seconds: float) -> tuple[int, float]:
    """Returns the system calls and the CPU time in ns of the processes during `seconds`; counting itself
    costs some ns a call.
    """
    argv = ("perf", "stat", "-x", ",", "-e", COUNTERS, "-p", ",".join(pids), "sleep", str(seconds))
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        failed(argv, done.returncode, *done.stderr.splitlines())
    values = {
        line.split(",")[2]: float(line.split(",")[0]) for line in done.stderr.splitlines() if "," in line
    }
    return int(values["raw_syscalls:sys_enter"]), values["task-clock"] * 1e6


def measure(qos: int, seconds: float) -> Cost:
    """Runs the topology once and counts all roles at the same time in the middle of its hold."""
    lab = f"cost-{os.getpid()}"
    argv = [str(VNET), "run", str(TOPOLOGY), "--kernel", "host", "--lab", lab, "-p", f"qos={qos}", "--json"]
    with tempfile.TemporaryDirectory() as out:
        argv += ["-p", f"hold={seconds + 4:g}s", "--results", out]
        run = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        wait_for_hold(run, Path(out))
        time.sleep(2)  # the last clients settle
        groups = {role: processes(lab, nodes) for role, nodes in ROLES.items()}
        with ThreadPoolExecutor() as pool:
            counts = pool.map(lambda pids: count(pids, seconds), groups.values())
            found = dict(zip(groups, counts, strict=True))
        if run.wait():
            raise SystemExit(f"syscall_cost.py: vnet run ended with status {run.returncode}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    if shutil.which("perf") is None:
        raise SystemExit("syscall_cost.py: perf is not installed; images/packages.sh bench")
    costs: dict[str, list[float]] = {role: [] for role in ROLES}
    print(f"{'QoS':<5}{'role':<12}{'calls':>9}{'CPU ms':>10}{'ns a call':>11}")
    for qos in [q for _ in range(options.turns) for q in (0, 1, 2)]:
        for role, (calls, cpu_ns) in sorted(measure(qos, options.seconds).items()):
            costs[role].append(cpu_ns / calls)
            print(f"{qos:<5}{role:<12}{calls:>9}{cpu_ns / 1e6:>10.1f}{cpu_ns / calls:>11.0f}", flush=True)
    for role, values in costs.items():
        low, high = min(values), max(values)
        print(f"{role}: median {statistics.median(values):.0f} ns a call ({low:.0f} to {high:.0f})")


main()
