"""Stores the command lines that start and remove a lab's part on each host, before anything exists there.

`raw/hosts.json` of the run contains them from the start (kernel/multi_host). `hosts.json` of the state
directory contains them while a host may have leftovers: `vnet down` reads it.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from contract.codec import build
from orchestrator.lab.errors import LabError
from orchestrator.lab.state import replace

RUN_FILE = "raw/hosts.json"
STATE_FILE = "hosts.json"
AT_ONCE_S = 10.0  # time limit in s at a lab's end, which does not wait for a lost host
DOWN_S = 180.0  # s; more than all time limits of a teardown together


@dataclass(frozen=True, slots=True)
class Way:
    """The commands for one host: `run` starts the part and connects to it, `down` removes everything that the
    part left.
    """

    machine: str  # as the user named it; "" means this machine
    run: tuple[str, ...]
    down: tuple[str, ...]


def of_run(run_dir: Path) -> dict[str, Way]:
    """Returns the commands by host; raises LabError if the run has none."""
    try:
        return _read(run_dir / RUN_FILE)
    except (OSError, ValueError, TypeError) as error:
        raise LabError(f"{run_dir / RUN_FILE}: {error}; start the lab with `vnet run`") from error


def left(state_dir: Path) -> dict[str, Way]:
    """Returns the commands for the hosts on which parts of the lab may still exist."""
    file = state_dir / STATE_FILE
    return _read(file) if file.exists() else {}


def note(directory: Path, ways: Mapping[str, Way], name: str = STATE_FILE) -> None:
    """Records the commands by host; removes the record if there are none."""
    file = directory / name
    if ways:
        data = {host: dataclasses.asdict(way) for host, way in ways.items()}
        replace(file, json.dumps(data, indent=1) + "\n")
    else:
        file.unlink(missing_ok=True)


def down(way: Way, longest_s: float = DOWN_S) -> str | None:
    """Runs the command that removes everything on one host; returns the error, or None if everything is
    removed.
    """
    try:
        done = subprocess.run(
            way.down, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=longest_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {longest_s:g} s"
    except OSError as error:
        return f"{way.down[0]}: {error.strerror}"
    return None if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


def _read(file: Path) -> dict[str, Way]:
    return {host: build(Way, way) for host, way in json.loads(file.read_text()).items()}
