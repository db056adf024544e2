"""Runs the commands of the benchmarks; a command that fails or is missing ends its benchmark with reason and
remedy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
VNET = Path(sys.executable).parent / "vnet"
CANNOT = 4  # vnet's exit status if this machine cannot carry out the command; vnet prints the reason
_LAST_LINES = 20


def name() -> str:
    """Returns the benchmark's file name, for its messages."""
    return Path(sys.argv[0]).name


def left_out(why: str) -> NoReturn:
    """Ends the benchmark without rows and with status 0, because this machine cannot carry it out."""
    print(f"{name()}: left out: {why}", file=sys.stderr)
    print("[]")
    raise SystemExit(0)


def as_root() -> None:
    if os.geteuid() != 0:
        left_out("labs in the host's own kernel need root; run make bench as root")


def tool(program: str) -> str:
    """Returns the path of a program; SystemExit with the remedy if it is not installed."""
    found = shutil.which(program)
    if found is None:
        raise SystemExit(f"{name()}: {program}: not installed; images/packages.sh run bench")
    return found


def reads(*argv: str) -> str:
    """Returns the output of a command; SystemExit with the end of its error output if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        said = done.stderr.splitlines() or done.stdout.splitlines() or ["it said nothing"]
        failed(argv, done.returncode, *said[-_LAST_LINES:])
    return done.stdout


def timed(*argv: str) -> float:
    """Returns the wall-clock seconds of a command, whose output goes to standard error; ends the benchmark if
    it fails.
    """
    start = time.monotonic()
    status = subprocess.run(argv, stdout=sys.stderr).returncode
    if status == CANNOT and str(VNET) in argv:
        left_out("vnet says above what this machine lacks")
    if status != 0:
        failed(argv, status, "what it said is above")
    return time.monotonic() - start


def failed(argv: tuple[str, ...], status: int, *said: str) -> NoReturn:
    lines = "".join(f"\n  {line}" for line in said)
    raise SystemExit(f"{name()}: status {status} of {' '.join(argv)}:{lines}")


def wait_for_hold(run: subprocess.Popen[bytes], out: Path) -> None:
    """Waits until the scenario that `vnet run --results OUT` runs has reached its hold; SystemExit after 120
    s or if the run ends.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and run.poll() is None:
        for progress in out.rglob("progress.jsonl"):
            for line in progress.read_text().splitlines():
                if line.endswith("}") and json.loads(line).get("phase") == "hold":
                    return
        time.sleep(0.1)
    raise SystemExit(f"{name()}: the run did not reach its hold; vnet run says why above")
