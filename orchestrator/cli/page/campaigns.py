"""Starts, resumes and stops campaigns for the live page; each is a `vnet campaign run` process.

`page.json` in the campaign's directory names the process, so that another server can stop it. The page cannot
stop a campaign that a terminal runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from contract import regular, rundir
from orchestrator.campaign import journal
from orchestrator.lab.state import Owned, owned
from orchestrator.language.kernels import NAMES
from orchestrator.language.problem import TopologyError

ROLE = "campaign"
STARTED, LOG = "page.json", "page.log"
TAIL_BYTES = 2000
BEGIN_S = 30.0  # longest wait in s for the campaign's directory
Json = dict[str, Any]


class RefusedError(Exception):
    """Raised if a campaign cannot be started or stopped; the text gives the reason."""


class Campaigns:
    """Starts and stops campaigns below `results`; paths of campaign files are relative to `directory`."""

    def __init__(self, results: Path, directory: Path) -> None:
        self._results, self._directory = results, directory
        self._children: list[subprocess.Popen[bytes]] = []

    def begin(self, wanted: Json) -> Path:
        """Starts the campaign of {file, parameters?, kernel?, time?}; waits until its directory exists, at
        most BEGIN_S seconds, and returns the directory. Raises RefusedError if a value is wrong, if a
        campaign of that name exists, or if the process ends at once.
        """
        from orchestrator.topology import load_campaign

        file, parameters = wanted.get("file"), wanted.get("parameters") or {}
        kernel, time = wanted.get("kernel", "auto"), wanted.get("time", "real")
        known = kernel in NAMES and time in ("real", "virtual") and isinstance(parameters, dict)
        if not isinstance(file, str) or not file or not known:
            raise RefusedError(
                f"campaign: give file, parameters by name, kernel ({', '.join(NAMES)}), time (real, virtual)"
            )
        named = {str(name): str(value) for name, value in parameters.items()}
        try:
            name = load_campaign(self._directory / file, named).name
        except (TopologyError, OSError, UnicodeDecodeError) as error:
            raise RefusedError(str(error)) from error
        place = self._results / name
        if place.exists():
            raise RefusedError(f"{name}: there is a campaign of that name; continue it, or rename the file's")
        words = [word for item in named.items() for word in ("-p", "=".join(item))]
        child = self._start(place, [file, *words, "--kernel", kernel, "--time", time, "--out", str(place)])
        deadline = monotonic() + BEGIN_S
        while not (place / "campaign.json").exists() and monotonic() < deadline:
            if child.poll() is not None:
                said = _said(place)
                shutil.rmtree(place)
                raise RefusedError(said or f"{name}: ended at once with status {child.returncode}")
            sleep(0.05)
        return place

    def resume(self, place: Path) -> None:
        """Starts a process that resumes the campaign; RefusedError if it runs already."""
        if locked(place):
            raise RefusedError(f"{place.name}: runs already")
        self._start(place, [str(place)])

    def stop(self, place: Path) -> None:
        """Interrupts the process of `page.json`, as Ctrl-C does: the running cells and the campaign end.

        Measurements are kept. Raises RefusedError if no such process runs.
        """
        runner = _runner(place)
        if runner is None:
            why = "a terminal runs it: end it there with Ctrl-C" if locked(place) else "does not run"
            raise RefusedError(f"{place.name}: {why}")
        os.kill(runner.pid, signal.SIGINT)

    def _start(self, place: Path, words: list[str]) -> subprocess.Popen[bytes]:
        place.mkdir(parents=True, exist_ok=True)
        with (place / LOG).open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "orchestrator.cli.main", "campaign", "run", *words],
                cwd=self._directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._children = [one for one in self._children if one.poll() is None] + [child]
        runner = owned(ROLE, child.pid)
        journal.write_json(place / STARTED, {"pid": runner.pid, "start_ticks": runner.start_ticks})
        return child


def how_it_runs(place: Path) -> Json:
    """Returns {running, ours, said} of a campaign. running: True if a process runs it. ours: True if a page
    started that process. said: the last output of the last process that a page has started; "" while that
    runs, or if there is none.
    """
    ours = _runner(place) is not None
    return {"running": ours or locked(place), "ours": ours, "said": "" if ours else _said(place)}


def _said(place: Path) -> str:
    log = place / LOG
    try:
        with regular.open_read(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace").strip()
    except OSError:  # no page has started a campaign there
        return ""


def locked(place: Path) -> bool:
    """Returns whether a process runs the campaign now, by its lock on the file `lock`."""
    try:
        with regular.open_read(place / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _runner(place: Path) -> Owned | None:
    """Returns the living process that a page has started for the campaign; None if there is none."""
    try:
        kept = regular.read_json(place / STARTED)
        found = Owned(ROLE, int(kept["pid"]), int(kept["start_ticks"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.alive else None


# Metrics for the matrix of a campaign, with their labels; a cell shows the first three that its run has.
HEADLINES = (
    ("latency_p50", "p50"), ("latency_p99", "p99"), ("round_trip_p50", "round trip p50"),
    ("transfer_rate", "rate"), ("throughput", "throughput"), ("messages_lost", "lost"),
    ("link_utilisation", "link used"), ("cpu", "CPU"),
)  # fmt: skip
MOST_HEADLINES = 3


def headline(run_dir: Path) -> str:
    """Returns up to three figures of a run, `p50 20.3 ms · p99 25 ms · ...`; "" if there are none.

    Each is the value of the first class, flow or group that has one.
    """
    try:
        rows = rundir.read_summary(run_dir)
        first: dict[str, Json] = {}
        for row in rows:
            if row["value"] is not None:
                first.setdefault(row["name"], row)
        parts = [
            f"{text} {float(first[name]['value']):.3g} {_unit(str(first[name]['unit']))}".strip()
            for name, text in HEADLINES if name in first
        ]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return " · ".join(parts[:MOST_HEADLINES])


def _unit(unit: str) -> str:
    return "" if unit == "messages" else "%" if unit.startswith("%") else unit
