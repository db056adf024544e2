"""Measures the CPU time of a bring-up by phase, for the command, the lab process, the launcher and the nodes.

`.venv/bin/python bench/phases.py FILE [-p name=value ...]`, as root, brings a lab up in the host's kernel and
takes it down. CPU time depends less on other work of the machine than the wall-clock time, which is printed
beside it. The CPU time of `ip` and `tc` is missing, because they end before it can be read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from commands import VNET, as_root

LOOK_S = 0.005
WHO = ("command", "lab", "launcher", "nodes")
Times = dict[str, float]


def cpu_ms(pid: int) -> float:
    """Returns the CPU time of all threads of a process in ms; 0 if it has ended."""
    try:
        threads = [
            (task / "schedstat").read_text().split()[0] for task in Path(f"/proc/{pid}/task").iterdir()
        ]
    except OSError:
        return 0.0
    return sum(map(int, threads)) / 1e6


def children(pid: int) -> Iterator[int]:
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())
    except OSError:
        return


def named(pids: Iterator[int], word: str) -> int:
    """Returns the pid of the first of these processes whose command line contains the word; 0 if none
    does.
    """
    for pid in pids:
        try:
            if word in Path(f"/proc/{pid}/cmdline").read_text():
                return pid
        except OSError:
            continue
    return 0


class Watch:
    """The CPU time so far of each part of the bring-up; a process that has ended keeps its last value."""

    def __init__(self, command: int) -> None:
        self._command, self._seen = command, dict.fromkeys(WHO, 0.0)

    def look(self, nodes: bool) -> Times:
        lab = named(children(self._command), "orchestrator.lab")
        launcher = named(children(lab), "launch") if lab else 0
        pids = {"command": [self._command], "lab": [lab], "launcher": [launcher]}
        if nodes and launcher:
            pids["nodes"] = list(children(launcher))
        for who, found in pids.items():
            self._seen[who] = max(self._seen[who], sum(map(cpu_ms, found)))
        return dict(self._seen)


def bring_up(arguments: list[str], lab: str, out: Path) -> Iterator[tuple[str, float, Times]]:
    """Yields (phase that begins, seconds since the start, CPU ms so far) for each event that
    the lab reports.
    """
    start = time.monotonic()
    argv = [str(VNET), "up", *arguments, "--lab", lab, "--kernel", "host", "--results", str(out)]
    up = subprocess.Popen(argv, stdout=sys.stderr)
    watch, told = Watch(up.pid), 0
    while up.poll() is None:
        lines = [line for file in out.rglob("progress.jsonl") for line in file.read_text().splitlines()]
        for line in (line for line in lines[told:] if line.endswith("}")):
            told += 1
            event = json.loads(line)
            what = f"{event.get('phase', event['event'])} {event.get('text', '')}".strip()
            yield what, time.monotonic() - start, watch.look(nodes=True)
        watch.look(nodes=False)
        time.sleep(LOOK_S)
    if up.returncode != 0:
        raise SystemExit(f"phases.py: vnet up: status {up.returncode}; it says why above")
    yield "the prompt", time.monotonic() - start, watch.look(nodes=False)


def main() -> None:
    as_root()
    if len(sys.argv) < 2:
        raise SystemExit(f"usage: {sys.argv[0]} FILE [-p name=value ...]")
    lab = f"phases-{os.getpid()}"
    print(f"{'until':<46} {'s':>7}" + "".join(f"{who:>10}" for who in WHO) + "  (CPU, ms)")
    with tempfile.TemporaryDirectory() as out:
        try:
            for what, passed_s, times in bring_up(sys.argv[1:], lab, Path(out)):
                print(f"{what[:46]:<46} {passed_s:>7.2f}" + "".join(f"{times[who]:>10.0f}" for who in WHO))
        finally:
            subprocess.run([str(VNET), "down", lab], stdout=sys.stderr)


main()
