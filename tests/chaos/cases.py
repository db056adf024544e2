"""Defines the commands that run under a fault, and the checks afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults import CUT, POWER, Disk, Fault

from orchestrator.lab import cleanup

ROOT = Path(__file__).resolve().parents[2]
# time limit of a run that takes 4 s: all time limits of vNET are shorter, also on a busy machine
WITHIN_S = 90.0
MARK = "VNET_CHAOS"  # an environment variable of all processes that a case starts
BROKEN = "BROKEN"
NO_FAULT = "no fault"  # for cases in which the injected error is one that no kernel returns for this call
# Texts of interrupted calls that never wait outside these tests: tokio's write to its eventfd (in the tables'
# library), and Python's reading of a directory of modules.
NEVER = (("failed to wake I/O driver",), ("in _fill_cache", "InterruptedError"))
TRACEBACK = "Traceback (most recent call last)"
# Errors during Python's own start have Python's texts, whether Python continues or ends.
SITE = re.compile(r"Error processing line \d+ of .*?Remainder of file ignored", re.DOTALL)
START = re.compile(r"<frozen |.*/lib/python3\.\d+/encodings/__init__\.py$").match
KEPT_AT = {POWER: "safe"}  # the directory whose files are kept on the disk; "kept" for all other faults


@dataclass(frozen=True)
class Case:
    """A directory of its own for one command under one fault."""

    base: Path
    within_s: float | None = WITHIN_S  # the longest time of each command
    more: tuple[tuple[str, str], ...] = ()  # further environment variables

    @property
    def environment(self) -> dict[str, str]:
        own = {MARK: str(self.base), "VNET_STATE_DIR": str(self.base / "s"), "PYTHONPATH": str(ROOT)}
        return {**os.environ, **own, **dict(self.more), "COLUMNS": "200"}

    @property
    def lab(self) -> str:
        """A name that no other case on this machine has."""
        return f"chaos-{self.base.name.lower().replace('_', '-x')}"

    def vnet(
        self, *arguments: str, under: tuple[str, ...] = (), fault: Fault | None = None
    ) -> tuple[int | None, str]:
        """Returns status and output; the status is None if the command did not end in time and was killed."""
        argv = [*(fault.under if fault else under), sys.executable, "-m", "orchestrator.cli.main", *arguments]
        process = subprocess.Popen(
            argv, cwd=self.base, env=self.environment, stdin=subprocess.DEVNULL, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        end = fault.meanwhile(self.left) if fault else lambda: None
        try:
            said, _ = process.communicate(timeout=self.within_s)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            self.kill(self.left())
            return None, process.communicate()[0]
        finally:
            end()

    def left(self) -> list[int]:
        """Returns the processes that this case started and that still run."""
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

    @staticmethod
    def kill(pids: list[int]) -> None:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def results(self, fault: Fault) -> Path:
        """Returns the directory of the command's results."""
        return self.base / (KEPT_AT.get(fault.name, "kept") if isinstance(fault, Disk) else "out")


@dataclass(frozen=True)
class Scene:
    """One command: `prepare` makes its files, `holds` returns what is wrong with its results ("":
    nothing).
    """

    name: str
    prepare: Callable[[Case], None]
    arguments: tuple[str, ...]
    holds: Callable[[Case, Path], str]
    # whether the scene can run under the fault
    bears: Callable[[Fault], bool] = lambda fault: fault.name != CUT
    why_not: Callable[[], str] = lambda: ""  # why this machine cannot run the scene; "": it can
    more: tuple[tuple[str, str], ...] = ()  # further environment variables


# ---- functions for scenes of a run by the fake driver


def pair(case: Case) -> None:
    shutil.copy(ROOT / "topologies" / "pair.yaml", case.base)


def reports(case: Case, results: Path) -> str:
    """Checks that each run that began has a report, or a reason why not."""
    for run in sorted(results.glob("*/*")):
        status, said = case.vnet("report", str(run))
        if status not in (0, 1) or (wrong := harmed(said)) or not said.strip():
            return f"report: {status}: {wrong if status in (0, 1) else said[-300:]}"
    return ""


# ---- functions for scenes of a run of real nodes

REAL = """\
name: NAME
segments: {lan: {subnet: 10.79.3.0/24}}
nodes:
  server: {segment: lan, software: {answers: {udp: {listen: 9000}}}}
  client:
    segment: lan
    software: {ask: {udp: {to: server, request: {size: 100 B, reply: 100 B, rate: 20 /s, rate_of: client}}}}
captures: {server: {at: node server}}
run: {connect_interval: 100 ms, hold: 1 s, drain: 1 s}
"""


def _real(case: Case) -> None:
    (case.base / "lab.yaml").write_text(REAL.replace("NAME", case.lab))


def _no_real() -> str:
    if os.geteuid() != 0:
        return "real nodes on this kernel need root"
    return "" if (ROOT / "target/release/vnet-agent").exists() else "no agent (make setup)"


# ---- functions for scenes of a campaign of two cells, which is resumed

CELLS = {"pair.delay-1ms.r1", "pair.delay-5ms.r1"}
CAMPAIGN = """\
name: cells
seed: 1
campaign:
  topologies: [pair.yaml]
  parameters: {hold: 1 s}
  factors: {delay: [1 ms, 5 ms]}
"""


def _campaign(case: Case) -> None:
    pair(case)
    (case.base / "cells.yaml").write_text(CAMPAIGN)


def _resumes(case: Case, results: Path) -> str:
    """Checks that both cells are complete and count once, and that nothing measured before the fault was
    lost.
    """
    words = (*CELLS_RUN[:-1], str(results / "c"), "--retry-failed")
    status, said = case.vnet(*words)
    if status != 0:
        return f"campaign run once more: {status}: {' '.join(said.split())[-400:]}"
    lines = [json.loads(line) for line in (results / "c" / "cells.jsonl").read_text().splitlines()]
    complete = Counter(line["cell"] for line in lines if line["state"] == "complete")
    if complete != Counter(CELLS):
        return f"cells complete: {dict(complete)}"
    for run in (results / "c" / line["run_dir"] for line in lines if line["state"] == "complete"):
        status, said = case.vnet("report", str(run), "--reduce")
        if status != 0:
            return f"a complete cell: {' '.join(said.split())[-300:]}"
    return ""


# ---- functions for scenes that make tables and page of an existing run


def _finished(case: Case) -> None:
    pair(case)
    status, said = case.vnet("run", "pair.yaml", "--kernel", "fake", "-p", "hold=1 s", "--results", "first")
    assert status == 0, said
    (run,) = (case.base / "first").glob("*/*")
    shutil.copytree(run, case.base / "out" / "run")
    (case.base / "headline").write_bytes((run / "summary.json").read_bytes())


def _reduces(case: Case, results: Path) -> str:
    """Checks that a reduction without the fault gives the same figures as before."""
    status, said = case.vnet("report", str(results / "run"), "--reduce")
    if status != 0:
        return f"report --reduce once more: {status}: {' '.join(said.split())[-400:]}"
    same = (results / "run" / "summary.json").read_bytes() == (case.base / "headline").read_bytes()
    return "" if same else "report --reduce once more: other figures"


RUN = ("run", "pair.yaml", "--kernel", "fake", "-p", "hold=1 s", "--results", "out")
REAL_RUN = ("run", "lab.yaml", "--kernel", "host", "--results", "out")
CELLS_RUN = ("campaign", "run", "cells.yaml", "--kernel", "fake", "--out", "out/c")
REDUCE = ("report", "out/run", "--reduce")
SCENES = {
    scene.name: scene
    for scene in (
        Scene("run", pair, RUN, reports),
        Scene("real run", _real, REAL_RUN, reports, why_not=_no_real),
        Scene("campaign", _campaign, CELLS_RUN, _resumes),
        Scene(
            "report",
            _finished,
            REDUCE,
            _reduces,
            bears=lambda fault: fault.name != CUT and not isinstance(fault, Disk),
        ),
    )
}


def harmed(text: str) -> str:
    """Returns the texts in an output that no command may print."""
    _, *tracebacks = SITE.sub("", text).split(TRACEBACK)
    for traceback in tracebacks:
        files = re.findall(r'File "([^"]+)"', traceback)
        if not files or not all(map(START, files)):
            return f"{TRACEBACK}: {' '.join(traceback.split())[:400]}"
    if (words := "internal error") in text:
        return " ".join(text[text.index(words) :].split())[:400]
    return ""


def tried(scene: Scene, fault: Fault, folder: Path, within_s: float = WITHIN_S) -> str:
    """`done`, `failed` or `killed`, if nothing of the lab is left and all measured data are readable; else
    what was wrong.

    `within_s`: when each command has to have ended. NO_FAULT: nothing that may be asked of it.
    """
    case = Case(Path(tempfile.mkdtemp(prefix="c", dir=folder)), within_s, scene.more)
    try:
        for name in ("out", "kept", "safe"):
            (case.base / name).mkdir()
        scene.prepare(case)
        return _tried(case, scene, fault)
    finally:
        shutil.rmtree(case.base, ignore_errors=True)


def _tried(case: Case, scene: Scene, fault: Fault) -> str:
    status, said = case.vnet(*scene.arguments, fault=fault)
    if any(all(part in said for part in parts) for parts in NEVER):
        return f"{BROKEN}: {wrong}" if (wrong := _left(case)) else NO_FAULT
    if status is None:
        late = f"did not end within {case.within_s:g} s: {' '.join(said.split())[-300:]}"
        return f"{BROKEN}: {late} {_left(case)}".rstrip()
    killed = status in (-9, 137)
    if not killed and (wrong := harmed(said)):
        return f"{BROKEN}: {wrong}"
    if status > 0 and not killed and not said.strip():
        return f"{BROKEN}: status {status} without a word"
    if wrong := _left(case) or scene.holds(case, case.results(fault)) or _left(case):
        return f"{BROKEN}: {wrong}"
    return "done" if status == 0 else "killed" if killed else "failed"


def _left(case: Case) -> str:
    """Returns everything left after `vnet down`; empty if nothing is left."""
    until = time.monotonic() + 15
    while case.left() and time.monotonic() < until:
        time.sleep(0.05)  # the lab process notices that its owner has gone, and ends itself
    state = case.base / "s"
    for lab in sorted(p.name for p in state.iterdir()) if state.is_dir() else ():
        status, said = case.vnet("down", lab)
        if status != 0:
            return f"down: {status}: {' '.join(said.split())[-300:]}"
    if left := case.left():
        names = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in left]
        case.kill(left)
        return f"left running: {names}"
    if state.is_dir() and any(state.iterdir()):
        return f"left: {[str(p) for p in state.iterdir()]}"
    if cleanup.leftovers(case.lab, state):  # remains that the run could not remove; see cleanup.running_labs
        case.vnet("down", case.lab, under=("env", "-u", "VNET_STATE_DIR"))
    there = cleanup.leftovers(case.lab, state)
    return f"left: {there}" if there else ""
