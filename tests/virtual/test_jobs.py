"""Tests parallel runs of a campaign: they give the bytes of a single run, and a kill loses only the runs in
progress.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from virtual_place import Place, Ran

from orchestrator.campaign import journal
from orchestrator.campaign.cells import recover
from orchestrator.cli.jobs import JobsView
from orchestrator.run.identity import identical_set

CAMPAIGN = """\
name: two
seed: 7
campaign: {topologies: [small.yaml], repetitions: 2}
"""


def test_side_by_side_gives_the_bytes_of_a_run_alone(place: Place, baseline: Ran) -> None:
    (place.cwd / "two.yaml").write_text(CAMPAIGN)
    done = place.vnet(
        "campaign",
        "run",
        "two.yaml",
        "--time",
        "virtual",
        "--jobs",
        "2",
        "--out",
        "camp",
        "--no-page",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (place.cwd / "camp" / "cells.jsonl").read_text().splitlines()]
    assert {(line["seed"], line["state"]) for line in lines} == {(7, "complete"), (8, "complete")}
    first = next(line for line in lines if line["seed"] == 7)
    hashes = json.loads((place.cwd / "camp" / first["run_dir"] / "manifest.json").read_text())["hashes"]
    assert {name: hashes[name] for name in baseline.hashes} == baseline.hashes
    assert not list((place.cwd / "camp").glob("running*")) and not (place.cwd / "camp" / "engine").exists()
    assert "[1/2]" in done.stderr and "[2/2]" in done.stderr and "complete in" in done.stderr


def test_one_after_the_other_and_with_a_worker_killed_the_tables_are_the_same(place: Place) -> None:
    (place.cwd / "two.yaml").write_text(CAMPAIGN)
    common = ("campaign", "run", "two.yaml", "--time", "virtual", "--no-page")
    assert place.vnet(*common, "--out", "seq").returncode == 0
    process = place.start(*common, "--out", "killed", "--on", "local:2")
    lost = kill_a_worker(process, place.cwd / "killed")
    said = process.communicate(timeout=240)[1]
    assert process.returncode == 0, said
    assert said.count("was lost; the cell runs again on") == 1
    assert tables_of(place.cwd / "killed") == tables_of(place.cwd / "seq")
    lines = [json.loads(text) for text in (place.cwd / "killed" / "cells.jsonl").read_text().splitlines()]
    assert sorted(line["state"] for line in lines) == ["complete", "complete", "interrupted"]
    assert [line["run_dir"] for line in lines if line["state"] == "interrupted"] == [lost]


def kill_a_worker(process: subprocess.Popen[str], campaign: Path) -> str:
    """Kills (kill -9) the worker of a lab that has begun, and returns the run directory that it leaves."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        for note in campaign.glob("running-*.json"):
            line = json.loads(note.read_text())
            about = campaign / "engine" / f"{line['cell']}.json"
            if (campaign / line["run_dir"] / "raw").exists() and about.exists():
                cell = json.loads(about.read_text())["process"]["pid"]
                os.kill(_parent(_parent(cell)), 9)  # the resident process forked the cell
                return str(line["run_dir"])
        time.sleep(0.02)
    raise AssertionError("no cell began")


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def tables_of(campaign: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of the campaign's runs that must be the same; asserts that no cell
    counts twice.
    """
    found = {}
    lines = [json.loads(text) for text in (campaign / "cells.jsonl").read_text().splitlines()]
    for line in (line for line in lines if line["state"] == "complete"):
        assert f"{line['cell']} proof.json" not in found
        run_dir = campaign / line["run_dir"]
        found |= {f"{line['cell']} {name}": value for name, value in identical_set(run_dir).items()}
    assert found
    return found


def test_all_cells_in_flight_are_settled_after_a_kill(tmp_path: Path) -> None:
    for slot in ("1", "2"):
        run_dir = tmp_path / "runs" / f"cell.r{slot}"
        run_dir.mkdir(parents=True)
        (run_dir / "manifest.json").write_text('{"state": "running"}')
        line = {"cell": f"cell.r{slot}", "run_dir": f"runs/cell.r{slot}", "slot": slot}
        journal.begin(tmp_path, {**line, "lab": f"no-such-lab-job{slot}"})
    assert len(journal.in_flight(tmp_path)) == 2
    recover(tmp_path)
    assert journal.in_flight(tmp_path) == []
    assert {name: line["state"] for name, line in journal.latest(tmp_path).items()} == {
        "cell.r1": "interrupted",
        "cell.r2": "interrupted",
    }
    for slot in ("1", "2"):
        manifest = json.loads((tmp_path / "runs" / f"cell.r{slot}" / "manifest.json").read_text())
        assert manifest["state"] == "interrupted"


def test_the_view_tells_of_all_runs() -> None:
    said: list[str] = []
    now = [0.0]
    view = JobsView(said.append, lambda: now[0])
    plan = {"ramp_ns": 0, "hold_ns": 10_000_000_000}
    for number in (1, 2):
        view({"event": "cell", "cell": f"c{number}", "number": number, "total": 3})
        view({"event": "plan", "plan": plan, "why": "because", "time": "virtual", "number": number})
    view({"event": "phase", "phase": "hold", "done": 4.0, "total": 10.0, "text": "", "number": 1})
    now[0] = 20.0
    view({"event": "phase", "phase": "hold", "done": 5.0, "total": 10.0, "text": "", "number": 2})
    assert "[1] hold 40%  [2] hold 50%" in said[-1]
    view({"event": "cell-end", "cell": "c1", "state": "complete", "error": None, "wall_s": 20.0, "number": 1})
    assert "c1: complete in 20 s; 2 left, about 40 s" in said[-1]
    view({"event": "cell-end", "cell": "c2", "state": "failed", "error": "why", "wall_s": 20.0, "number": 2})
    assert "c2: failed after 20 s: why" in said[-1]
    assert sum("because" in line for line in said) == 1
