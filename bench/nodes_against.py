"""Compares the cost of nodes in this checkout with another's, in turns: 350 nodes are made, run a program
each, and end.

    python bench/nodes_against.py CHECKOUT [--pairs N] [--nodes N] [--out FILE]

CHECKOUT is a directory of another commit whose agent is built (target/release/vnet-agent). Each pair starts
the launcher of both, which take turns at being first, and sends the same requests to both. The benchmark
prints the ratio of this checkout to the other for the wall-clock time and for the CPU time of launcher and
nodes, as the geometric mean of the pairs with its 95 % interval. The CPU time is meaningful on a busy
machine, too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import sandbox
from against import ratio
from commands import ROOT, as_root

DISK_BYTES = 64 << 20


@dataclass(frozen=True)
class Took:
    """The seconds until the nodes exist and until each has run a program, and the CPU time including their
    end.
    """

    created_s: float
    ready_s: float
    cpu_s: float


def bring_up(checkout: Path, count: int) -> Took:
    names = [f"n{number}" for number in range(count)]
    nodes = [
        {
            "name": n,
            "netns": f"bench-nodes-{os.getpid()}.{n}",
            "hostname": n,
            "cgroup_procs": [],
            "ipv6": False,
        }
        for n in names
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as place:
        (logs := Path(place) / "logs").mkdir()
        contained = {"hidden": [place], "logs": str(logs), "disk_bytes": DISK_BYTES}
        sandbox.AGENT = checkout / "target/release/vnet-agent"
        launcher = sandbox.Launcher(Path(place))
        start = time.monotonic()
        # Before the renaming of the launcher's fields, `sandbox` was `walls`, and `hidden` was `hides`.
        former = {**contained, "hides": contained["hidden"]}
        launcher.ask(op="create", core=None, nodes=nodes, sandbox=contained, walls=former)
        created = time.monotonic()
        for name in names:  # a program in each, so that each gets its own file systems
            launcher.ask(op="exec", node=name, argv=["/bin/true"], env={}, tty=None)
        ready = time.monotonic()
        launcher.ask(op="quit")
        launcher.process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(created - start, ready - start, cpu)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=350)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    as_root()
    other, pairs = options.checkout.resolve(), list[tuple[Took, Took]]()
    for number in range(options.pairs):
        order = (ROOT, other) if number % 2 == 0 else (other, ROOT)
        took = {checkout: bring_up(checkout, options.nodes) for checkout in order}
        pairs.append((took[ROOT], took[other]))
    rows = []
    for what in ("created_s", "ready_s", "cpu_s"):
        found = ratio([(getattr(mine, what), getattr(theirs, what)) for mine, theirs in pairs])
        print(
            f"{options.nodes} nodes, {what}: ratio {found.mean:.3f} ({found.low:.3f} to {found.high:.3f}), "
            f"of the least {found.least:.3f}",
            flush=True,
        )
        rows.append({"what": what, **vars(found), "pairs": len(pairs)})
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
