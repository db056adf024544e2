"""Faults at every step of a run by the fake driver, and what came of each; `make chaos` sweeps them."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 90.0  # of a run that takes 4 s: every wait of ours ends by then, also on a busy machine
MARK = "VNET_CHAOS"  # in the environment of everything that a case starts
# System call: the error that it fails with, and how often a process makes it, about.
FAILING = {
    "mkdir": ("ENOSPC", 24), "rename": ("EROFS", 10), "openat": ("EMFILE", 900), "vfork": ("EAGAIN", 3),
    "execve": ("ENOENT", 4), "pipe2": ("EMFILE", 4), "socket": ("EMFILE", 2), "bind": ("EADDRINUSE", 1),
    "flock": ("ENOLCK", 1), "unlink": ("EPERM", 2), "rmdir": ("EBUSY", 2), "ftruncate": ("ENOSPC", 2),
}  # fmt: skip
KILLED = {"write": 200, "read": 700, "openat": 900, "mkdir": 24, "rename": 10, "close": 700, "poll": 30}
KINDS = ("fails", "fails from here on")
MOST_KIB = 900  # of what a run writes


class Fault(Protocol):
    """What a run is put under: words before its command; `out` is where its results go meanwhile."""

    @property
    def name(self) -> str: ...
    @property
    def under(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Call:
    """The n-th such call of each process fails, fails from then on, or kills its process."""

    call: str
    kind: str
    number: int

    @property
    def name(self) -> str:
        return f"`{self.call}` {self.kind}"

    def __str__(self) -> str:
        return f"{self.call} {self.number} {self.kind}"

    @property
    def under(self) -> tuple[str, ...]:
        what = f"error={FAILING[self.call][0]}" if self.kind in KINDS else "signal=KILL"
        when = f"{self.number}{'+' * (self.kind == KINDS[1])}"
        inject = ("-e", f"trace={self.call}", "-e", f"inject={self.call}:{what}:when={when}")
        fast = ("--seccomp-bpf",) if self.kind in KINDS else ()  # which delivers no signals
        return ("strace", "-f", *fast, "-qqq", "-o", "/dev/null", *inject)


@dataclass(frozen=True)
class Disk:
    """Results on a file system of its own: full after so many KiB, or read only after so many ms."""

    kind: str
    number: int
    name = property(lambda self: self.kind)

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    @property
    def under(self) -> tuple[str, ...]:
        size, later = self.number, ""
        if self.kind == READ_ONLY:
            size = 1 << 16
            later = f"(sleep {self.number / 1000}; mount -o remount,ro none out) & "
        script = (
            f'mount -t tmpfs -o size={size}k none out && {later}"$@"; s=$?; cp -a out/. kept; wait; exit $s'
        )
        return ("unshare", "-m", "sh", "-c", script, "sh")


FULL, READ_ONLY = "disk full", "disk read only in the middle"


@dataclass(frozen=True)
class Case:
    """A directory of its own for one run under one fault."""

    base: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {MARK: str(self.base), "VNET_STATE_DIR": str(self.base / "s"), "PYTHONPATH": str(ROOT)}
        return {**os.environ, **own, "COLUMNS": "200"}

    def vnet(self, *arguments: str, under: tuple[str, ...] = ()) -> tuple[int | None, str]:
        """(status, what was said); status None where it did not end in time, and was killed."""
        argv = [*under, sys.executable, "-m", "orchestrator.cli.main", *arguments]
        process = subprocess.Popen(
            argv, cwd=self.base, env=self.environment, stdin=subprocess.DEVNULL, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=WITHIN_S)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            for pid in self.left():
                os.kill(pid, signal.SIGKILL)
            return None, process.communicate()[0]

    def left(self) -> list[int]:
        """Processes that this case started and that still run."""
        wanted = f"{MARK}={self.base}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found


def harmed(text: str) -> str:
    """What no command may say, if it said it."""
    for words in ("Traceback (most recent call last)", "internal error"):
        if words in text:
            return f"{words}: {' '.join(text[text.index(words) :].split())[:400]}"
    return ""


def tried(case: Case, under: tuple[str, ...]) -> str:
    """`done`, `failed` or `killed`, with nothing left and what was measured readable; else what was wrong."""
    status, said = case.vnet(
        "run", "pair.yaml", "--kernel", "fake", "-p", "hold=1 s", "--out", "out", under=under
    )
    if status is None:
        return f"BROKEN: did not end within {WITHIN_S:g} s: {' '.join(said.split())[-300:]}"
    if status not in (-9, 137) and (wrong := harmed(said)):
        return f"BROKEN: {wrong}"
    if status > 0 and status != 137 and not said.strip():
        return f"BROKEN: status {status} without a word"
    return _afterwards(case) or ("done" if status == 0 else "killed" if status in (-9, 137) else "failed")


def _afterwards(case: Case) -> str:
    """What is wrong of what a run left; empty if nothing is."""
    until = time.monotonic() + 15
    while case.left() and time.monotonic() < until:
        time.sleep(0.05)  # the lab process notices that its owner has gone, and ends itself
    state = case.base / "s"
    for lab in sorted(p.name for p in state.iterdir()) if state.is_dir() else ():
        status, said = case.vnet("down", lab)
        if status != 0:
            return f"BROKEN: down: {status}: {' '.join(said.split())[-300:]}"
    if left := case.left():
        names = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in left]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return f"BROKEN: left running: {names}"
    if state.is_dir() and any(state.iterdir()):
        return f"BROKEN: left: {[str(p) for p in state.iterdir()]}"
    for run in sorted(case.base.glob("[ok][ue][tp]*/*/*")):
        status, said = case.vnet("report", str(run))
        if status not in (0, 1) or (wrong := harmed(said)) or not said.strip():
            return f"BROKEN: report: {status}: {wrong if status in (0, 1) else said[-300:]}"
    return ""


def faults(seed: int) -> Iterator[Fault]:
    """Every kind in turn, at numbers from the seed, without an end."""
    rng = random.Random(seed)
    while True:
        for call, (_, most) in FAILING.items():
            yield Call(call, rng.choice(KINDS), rng.randint(1, most))
        for call, most in KILLED.items():
            yield Call(call, "kills its process", rng.randint(1, most))
        if os.geteuid() == 0:
            for _ in range(3):
                yield Disk(FULL, rng.randint(1, MOST_KIB))
                yield Disk(READ_ONLY, rng.randint(1, 3000))


def one(fault: Fault, folder: Path) -> str:
    """The outcome of one fault, in a directory of its own below `folder`."""
    case = Case(Path(tempfile.mkdtemp(prefix="c", dir=folder)))
    try:
        shutil.copy(ROOT / "topologies" / "pair.yaml", case.base)
        (case.base / "out").mkdir()
        (case.base / "kept").mkdir()
        return tried(case, fault.under)
    finally:
        shutil.rmtree(case.base, ignore_errors=True)


def table(found: dict[str, Counter[str]]) -> str:
    """Outcomes by kind of fault, in Markdown."""
    lines = ["| fault | done | failed, said why | killed | not held |", "|---|---|---|---|---|"]
    for kind, counted in sorted(found.items()):
        cells = (str(counted[outcome]) for outcome in ("done", "failed", "killed", "BROKEN"))
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    outcomes: dict[str, Counter[str]] = {}
    end = time.monotonic() + asked.seconds
    with tempfile.TemporaryDirectory(prefix="vc") as name:
        for fault in faults(asked.seed):
            outcome = one(fault, Path(name))
            outcomes.setdefault(fault.name, Counter())[outcome.partition(":")[0]] += 1
            if outcome.startswith("BROKEN"):
                print(f"{fault}: {outcome}", flush=True)
            if time.monotonic() > end:
                break
    print(table(outcomes))
    sys.exit(any(counted["BROKEN"] for counted in outcomes.values()))
