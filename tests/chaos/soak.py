"""Starts, changes, kills and ends labs at random for `make soak`, for the requested time, and tests that
nothing grows.

Up to four labs run at once, each of three nodes on the machine's own kernel (root). The earlier steps
determine the expected outcome of each step, which is compared with the command's output. Every 60 steps all
labs go down and the machine's objects are counted: more than the first time is a leak.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases import Case

from orchestrator.lab import cgroup, cleanup, namespaces

TOPOLOGY = """\
name: NAME
segments: {lan: {subnet: 10.79.4.0/24}}
nodes:
  server: {segment: lan, software: {answers: {udp: {listen: 9000}}}}
  client:
    segment: lan
    software: {ask: {udp: {to: server, request: {size: 100 B, reply: 100 B, rate: 50 /s, rate_of: client}}}}
  idle: {segment: lan}
links: {way: {between: [client, lan], both: {rate: 10 Mbit/s}}}
captures: {server: {at: node server}}
run: {connect_interval: 100 ms, hold: 1 s, drain: 1 s}
"""
LABS = 4
GROWN_KIB = (
    # KiB by which a lab process may grow after its first ten steps; the allocator's own variation is smaller
    4096
)
SETTLED = 10
ALL_DOWN = 60  # steps


@dataclass
class Lab:
    """The expected state of a lab; `vnet` must report the same."""

    name: str
    up: bool = False
    dead: bool = False  # its process was killed, so only `down` works
    stopped: set[str] = field(default_factory=set)
    steps: int = 0
    first: tuple[int, int] | None = None  # (KiB, descriptors) of its process after SETTLED steps


class WrongError(Exception):
    """Raised for a result that differs from the expected one."""


@dataclass
class Soak:
    case: Case
    rng: random.Random
    labs: list[Lab] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    baseline: dict[str, int] | None = None
    most: tuple[int, int] = (0, 0)  # growth of a lab process: KiB, descriptors

    def __post_init__(self) -> None:
        self.labs = [Lab(f"{self.case.lab}-{number}") for number in range(LABS)]
        for lab in self.labs:
            (self.case.base / f"{lab.name}.yaml").write_text(TOPOLOGY.replace("NAME", lab.name))

    # ---- steps: each changes a lab and checks the expected outcome

    def step(self) -> None:
        lab = self.rng.choice(self.labs)
        if lab.dead:
            does = self.down if self.rng.random() < 0.5 else self.refused
        elif not lab.up:
            does = self.rng.choice((self.bring_up, self.bring_up, self.run, self.down_again))
        else:
            does = self.rng.choice(
                (self.change, self.change, self.set_mtu, self.stop_or_start, self.execute, self.execute,
                 self.up_again, self.kill, self.down)
            )  # fmt: skip
        does(lab)
        self.counted[does.__name__.replace("_", " ")] += 1
        self.grown(lab)
        if self.counted.total() % ALL_DOWN == 0:
            for each in self.labs:
                if each.up or each.dead:
                    self.down(each)
            self.count()

    def bring_up(self, lab: Lab) -> None:
        self.ask(0, "up", f"{lab.name}.yaml", "--kernel", "host", "--results", "out")
        lab.up, lab.stopped, lab.steps, lab.first = True, set(), 0, None

    def up_again(self, lab: Lab) -> None:
        """Asserts that a second `vnet up` of the same name fails with a message that names the lab."""
        said = self.ask(None, "up", f"{lab.name}.yaml", "--kernel", "host", "--results", "out")
        self.insist(lab.name in said, f"the second of a name was told: {said}")

    def run(self, lab: Lab) -> None:
        self.ask(0, "run", f"{lab.name}.yaml", "--kernel", "host", "--results", "out")
        run = max((self.case.base / "out" / lab.name).glob("*"), key=lambda path: path.stat().st_mtime_ns)
        figures = json.loads((run / "summary.json").read_text())
        self.insist(bool(figures), "a run has figures")

    def down_again(self, lab: Lab) -> None:
        self.ask(None, "down", lab.name)

    def change(self, lab: Lab) -> None:
        rate = self.rng.randint(1, 100)
        self.ask(0, "link", lab.name, "way", "--rate", f"{rate} Mbit/s")

    def set_mtu(self, lab: Lab) -> None:
        self.ask(0, "set", lab.name, "server", "--mtu", str(self.rng.randint(600, 1500)))

    def stop_or_start(self, lab: Lab) -> None:
        if lab.stopped:
            self.ask(0, "start", lab.name, "idle")
        else:
            self.ask(0, "stop", lab.name, "idle")
        lab.stopped ^= {"idle"}

    def execute(self, lab: Lab) -> None:
        said = self.ask(0, "exec", lab.name, "client", "--", "ping", "-c1", "-W5", "server")
        self.insist("1 received" in said, said)

    def kill(self, lab: Lab) -> None:
        os.kill(self.process(lab), 9)
        lab.up, lab.dead = False, True

    def refused(self, lab: Lab) -> None:
        """Asserts that a command on a lab whose process is dead fails."""
        self.ask(None, "exec", lab.name, "client", "--", "true")

    def down(self, lab: Lab) -> None:
        self.ask(0, "down", lab.name)
        there = cleanup.leftovers(lab.name, self.case.base / "s")
        self.insist(not there, f"left: {there}")
        lab.up = lab.dead = False

    # ---- checks

    def ask(self, wanted: int | None, *arguments: str) -> str:
        """Returns the output of the command; asserts that its status is `wanted`, or not 0 if `wanted` is
        None.
        """
        status, said = self.case.vnet(*arguments)
        right = status == wanted if wanted is not None else status not in (0, None)
        self.insist(right and "Traceback" not in said, f"status {status}: {' '.join(said.split())[-600:]}")
        return said

    def insist(self, holds: bool, what: str) -> None:
        if not holds:
            raise WrongError(what)

    def process(self, lab: Lab) -> int:
        about: dict[str, Any] = json.loads((self.case.base / "s" / lab.name / "lab.json").read_text())
        (pid,) = [p["pid"] for p in about["processes"] if p["role"] == "lab"]
        return int(pid)

    def grown(self, lab: Lab) -> None:
        """Asserts that a lab's process has grown by at most GROWN_KIB and two descriptors since step
        SETTLED.
        """
        if not lab.up:
            return
        lab.steps += 1
        if lab.steps < SETTLED:
            return
        there = Path(f"/proc/{self.process(lab)}")
        kib = next(
            int(x.split()[1]) for x in (there / "status").read_text().splitlines() if x.startswith("VmRSS")
        )
        now = (kib, len(list((there / "fd").iterdir())))
        lab.first = lab.first or now
        more = (now[0] - lab.first[0], now[1] - lab.first[1])
        self.most = (max(self.most[0], more[0]), max(self.most[1], more[1]))
        self.insist(more[0] <= GROWN_KIB, f"{lab.name} grew by {more[0]} KiB in {lab.steps} steps")
        self.insist(more[1] <= 2, f"{lab.name} holds {more[1]} more descriptors after {lab.steps} steps")

    def count(self) -> None:
        """Counts this soak's processes, namespaces, groups, mounts and files while no lab is up, and asserts
        that no count exceeds the first one.
        """
        for run in (self.case.base / "out").glob("*/*"):
            shutil.rmtree(run)
        state = self.case.base / "s"
        groups = (g for lab in self.labs for g in cgroup.lab_groups(cgroup.this_machine(), lab.name))
        spaces = (p for lab in self.labs for p in namespaces.NETNS.glob(f"*{lab.name}*"))
        mine = str(self.case.base)
        now = {
            "processes": len(self.case.left()),
            "network namespaces": len(list(spaces)),
            "control groups": len(list(groups)),
            "mounts": sum(mine in line for line in Path("/proc/self/mountinfo").read_text().splitlines()),
            "state": len(list(state.iterdir())) if state.is_dir() else 0,
            "files below /tmp": len(list(Path("/tmp").glob("vnet*"))),
        }
        self.counted["counted with no lab up"] += 1
        self.baseline = self.baseline or now
        more = {what: number for what, number in now.items() if number > self.baseline[what]}
        self.insist(not more, f"more than at first ({self.baseline}): {more}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    with tempfile.TemporaryDirectory(prefix="vs") as name:
        soak = Soak(Case(Path(name)), random.Random(asked.seed))
        status = 0
        try:
            while time.monotonic() < end:
                soak.step()
        except WrongError as wrong:
            print(f"step {soak.counted.total() + 1} of seed {asked.seed}: {wrong}")
            status = 1
        finally:
            for lab in soak.labs:
                soak.case.vnet("down", lab.name)
    print("\n".join(f"{number:6d} {what}" for what, number in sorted(soak.counted.items())))
    print(f"a lab's process grew by at most {soak.most[0]} KiB and {soak.most[1]} descriptors")
    return status


if __name__ == "__main__":
    sys.exit(main())
