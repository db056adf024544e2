"""Tests a hunt with a real broker in virtual time: it finds what a killed broker without stored state loses,
and the file that it writes fails again.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from virtual_place import PROJECT, Place

FILE = """\
name: hunted
segments: {near: {subnet: 10.60.0.0/24}, far: {subnet: 10.60.0.0/24}}
nodes:
  server: {segment: far, software: {b: {broker: mosquitto}}}
  meter:
    segment: near
    software:
      send: {mqtt: {broker: server, publish: {topic: m/1, qos: 0, rate: 50 /s}}}
  reader:
    segment: far
    software:
      read: {mqtt: {broker: server, subscribe: [{topic: m/#, qos: 0}]}}
links: {wan: {between: [near, far], both: {delay: 100 ms}}}
run: {connect_interval: 100 ms, hold: 6 s, drain: 10 s}
expect: [{delivered: at-least-once}]
hunt:
  faults: [{kill: server, software: b, for: 0.5..2 s}, {impair: wan, both: {loss: 1..5 %}, for: 1..2 s}]
  at_most: {events: 2, trials: 8}
"""
COMMAND = ("hunt", "hunted.yaml", "--out", "out", "--json")


def killed(place: Place, lines: int) -> None:
    """Starts the hunt, and kills it as soon as `lines` outcomes are recorded."""
    argv = [sys.executable, "-m", "orchestrator.cli.main", *COMMAND]
    env = {**place.environment(), "PYTHONPATH": str(PROJECT)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, cwd=place.cwd, env=env, stdout=quiet, stderr=quiet) as process:
        book = place.cwd / "out" / "trials.jsonl"
        while process.poll() is None and (not book.exists() or book.read_bytes().count(b"\n") < lines):
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "it ended before"


@pytest.mark.sweep  # a dozen labs
def test_a_hunt_goes_on_after_a_kill_and_its_reproduction_fails_again(place: Place) -> None:
    (place.cwd / "hunted.yaml").write_text(FILE)
    killed(place, 3)
    before = (place.cwd / "out" / "trials.jsonl").read_bytes()
    done = place.vnet(*COMMAND)
    assert done.returncode == 7, done.stderr
    assert (place.cwd / "out" / "trials.jsonl").read_bytes().startswith(before)
    found = json.loads(done.stdout)
    first = found["violations"][0]
    assert [event.get("kill") for event in first["events"]] == ["server"] and first["repeats"]
    assert found["trials"] == 8
    again = place.vnet("run", first["file"], "--time", "virtual", "--out", "again")
    assert again.returncode == 7, again.stderr
    verified = place.vnet("verify", first["run_dir"])
    assert verified.returncode == 0, verified.stdout + verified.stderr
    kept = json.loads((Path(place.cwd) / first["run_dir"] / "manifest.json").read_text())
    made = json.loads((place.cwd / "again" / "manifest.json").read_text())["hashes"]
    assert kept["hashes"] and kept["hashes"].items() <= made.items(), (
        "the report's files are only in the second"
    )


def test_a_program_that_virtual_time_refuses_ends_the_hunt_before_its_first_trial(place: Place) -> None:
    (place.cwd / "hunted.yaml").write_text(
        FILE.replace("{b: {broker: mosquitto}}", "{b: {broker: mosquitto}, o: {command: /opt/none/run}}")
    )
    done = place.vnet(*COMMAND)
    assert done.returncode == 3, done.stderr
    assert "/opt/none/run" in done.stderr and not (place.cwd / "out").exists()


@pytest.mark.sweep  # two dozen labs
def test_any_number_of_workers_finds_the_same_violations(place: Place) -> None:
    (place.cwd / "hunted.yaml").write_text(FILE)
    found = []
    for jobs in ("1", "2", "3"):
        done = place.vnet("hunt", "hunted.yaml", "--out", f"of{jobs}", "--jobs", jobs, "--json")
        assert done.returncode == 7, done.stderr
        told = json.loads(done.stdout)
        files = [Path(place.cwd / one["file"]).read_text() for one in told["violations"]]
        shown = [(one["way"], one["events"], one["seed"], one["trials"]) for one in told["violations"]]
        found.append((told["states"], told["features"], told["rounds"], shown, files))
    assert found[0] == found[1] == found[2] and found[0][3]
