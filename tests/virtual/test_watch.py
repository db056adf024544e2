"""Tests that a program that blocks the virtual clock is named, and that commands that need a running lab are
refused.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from virtual_place import SMALL, Place

SPINNING = SMALL.replace(
    "  ear: {segment: right",
    "  idler:\n    segment: right\n"
    '    software: {spin: {command: ["/bin/sh", "-c", "sleep 2; while :; do :; done"]}}\n'
    "  ear: {segment: right",
)


def test_a_node_that_spins_is_named_and_what_was_written_is_kept(place: Place) -> None:
    (place.cwd / "spin.yaml").write_text(SPINNING)
    place.env["VNET_WATCHDOG"] = "4 s"
    ran = place.run("--raw", file="spin.yaml", status=1)
    manifest = ran.manifest
    assert manifest["state"] == "interrupted"
    assert "node idler: process" in manifest["error"] and "(sh)" in manifest["error"]
    assert "virtual time stands still" in manifest["error"]
    assert (ran.run_dir / "raw" / "guest.jsonl").stat().st_size > 0
    assert (ran.run_dir / "plan.json").exists()


def test_interrupting_keeps_what_was_measured(place: Place) -> None:
    (place.cwd / "long.yaml").write_text(SMALL.replace("hold: 3 s", "hold: 20000 s"))
    argv = [sys.executable, "-m", "orchestrator.cli.main", "run", "long.yaml", "--time", "virtual", "--json"]
    process = subprocess.Popen(
        argv,
        cwd=place.cwd,
        env=place.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    deadline = time.monotonic() + 120
    while "  hold" not in (line := process.stderr.readline()):
        assert line and time.monotonic() < deadline
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    outcome = json.loads(out)
    assert outcome["state"] == "interrupted"
    text = (place.cwd / outcome["run_dir"] / "raw" / "messages.csv").read_text()
    assert len(text.splitlines()) > 20


def test_what_needs_a_living_lab_is_refused(place: Place) -> None:
    kept = place.vnet("run", "small.yaml", "--time", "virtual", "--keep")
    assert kept.returncode == 2 and "would run ahead" in kept.stderr
    up = place.vnet("up", "small.yaml", "--time", "virtual")
    assert up.returncode == 2 and "would run ahead" in up.stderr
    assert not (Path(place.cwd) / "results").exists()


def test_side_by_side_in_real_time_is_refused(place: Place) -> None:
    done = place.vnet("campaign", "run", "small.yaml", "--jobs", "2")
    assert done.returncode == 2 and "disturb one another" in done.stderr
