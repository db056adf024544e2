"""Defines liars in a lab in real time on the machine's own kernel, for disturbances that virtual time cannot
have: stopped processes, cores taken by others, a queue or a link changed from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "cli"))
from command_line import CommandLine
from test_disturbed_labs import LAB, in_namespace, stopped, throttle

FILE = f"""\
name: {LAB}
segments: {{lan: {{subnet: 10.94.0.0/24}}}}
nodes:
  b: {{segment: lan, software: {{sink: {{udp: {{listen: 9000}}}}}}}}
  p:
    segment: lan
    software: {{tx: {{udp: {{to: [b], push: {{size: 100 B, rate: 50 /s, rate_of: client}}}}}}}}
captures:
  b: {{at: node b}}
run: {{connect_interval: 100 ms, hold: 6 s, drain: 2 s}}
"""
Disturb = Callable[[CommandLine, Path], None]


@dataclass(frozen=True)
class Real:
    """A liar: `disturb` acts during the hold, and the run must get one of the warnings `codes`, or fail.

    disk_bytes: size of a file system of its own for the results; None: where the test's files are.
    """

    name: str
    what: str
    codes: tuple[str, ...]
    disturb: Disturb
    disk_bytes: int | None = None


def still(*nodes: str) -> Disturb:
    """Returns a disturbance that stops the agents of nodes for 1.5 s."""
    return lambda _, __: stopped([pid for node in nodes for pid in in_namespace(node)], 1.5)


def of_command(name: str, seconds: float) -> Disturb:
    """Returns a disturbance that stops the lab's processes that run a program of that name."""

    def disturb(line: CommandLine, _: Path) -> None:
        found = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _ours(p, name, line)]
        assert found, f"no process {name}"
        stopped(found, seconds)

    return disturb


def _ours(process: Path, name: str, line: CommandLine) -> bool:
    """Returns whether a process belongs to the lab, by its name and by its open files or its arguments."""
    try:
        words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        comm = (process / "comm").read_text().strip()
        files = [str(one.readlink()) for one in (process / "fd").iterdir()]
    except OSError:
        return False
    return comm.startswith(name) and (LAB in words or any(str(line.cwd) in one for one in files))


def killed(name: str) -> Disturb:
    def disturb(line: CommandLine, _: Path) -> None:
        found = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _ours(p, name, line)]
        assert found, f"no process {name}"
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    return disturb


def hogs(_: CommandLine, __: Path) -> None:
    """Occupies every core for 2 s with programs of the highest priority."""
    busy = [
        subprocess.Popen(["nice", "-n", "-20", "timeout", "2", "sh", "-c", "while :; do :; done"])
        for _ in range(3 * (os.cpu_count() or 1))
    ]
    for one in busy:
        one.wait()


def quota(_: CommandLine, group: Path) -> None:
    throttle(group)


def queue_left(_: CommandLine, __: Path) -> None:
    words = f"tc -n vnet-{LAB}.p qdisc add dev eth0 root tbf rate 100kbit burst 5kb latency 90ms"
    subprocess.run(words.split(), check=True)


def link_down(_: CommandLine, __: Path) -> None:
    for word in ("down", "up"):
        subprocess.run(f"ip -n vnet-{LAB}.b link set eth0 {word}".split(), check=True)
        time.sleep(0.7)  # the duration of the outage is part of the test


def disk_full(line: CommandLine, _: Path) -> None:
    """Fills the file system of the results and frees it again after 1.5 s."""
    ballast = line.cwd / "results" / "ballast"
    subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4k"], stderr=subprocess.DEVNULL, check=False)
    time.sleep(1.5)  # the duration is part of the test
    ballast.unlink()


LIARS = (
    Real("real-receiver-stopped", "a receiver stands still for 1.5 s", ("trust-stopped",), still("b")),
    Real("real-sender-stopped", "a sender stands still for 1.5 s", ("trust-sender",), still("p")),
    Real(
        "real-capture-stopped",
        "tcpdump stands still for 1.5 s",
        ("trust-stopped",),
        of_command("tcpdump", 1.5),
    ),
    Real("real-capture-killed", "tcpdump is killed", ("collect", "capture"), killed("tcpdump")),
    Real(
        "real-launcher-stopped",
        "what samples counters and writes records stands still for 1.5 s",
        ("trust-stopped",),
        of_command("vnet-agent", 1.5),
    ),
    Real("real-quota", "a container's quota leaves the lab a tenth of a core", ("trust-throttling",), quota),
    Real(
        "real-hogs",
        "others of the highest priority take every core for 2 s",
        ("trust-run-queue", "trust-stalls", "trust-busy"),
        hogs,
    ),
    Real("real-queue", "a node gets a queue of 100 kbit/s from outside", ("changed",), queue_left),
    Real("real-link-down", "a node's link is down for 0.7 s", ("trust-message-losses",), link_down),
    Real("real-disk-full", "the disk of the results is full for 1.5 s", ("end",), disk_full, 16 << 20),
)
