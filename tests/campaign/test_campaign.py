"""Tests campaigns through the real command line: order, journal, resumption after kill -9, and the refusal of
changed content.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign.campaign import grown
from orchestrator.lab.state import NAME_IN_USE, State

PROJECT = Path(__file__).resolve().parents[2]
FILE = """\
name: small
seed: 5
campaign:
  topologies: [{pair}]
  factors:
    hold: [1 s, 2 s]
  repetitions: 2
"""
CELLS = [("1 s", 1, 5), ("2 s", 1, 5), ("1 s", 2, 6), ("2 s", 2, 6)]


class Place:
    """A directory with a campaign file, and the command line that runs in it."""

    def __init__(self, cwd: Path) -> None:
        self.cwd, self.dir = cwd, cwd / "results" / "small"
        self.file = cwd / "small.yaml"
        self.file.write_text(FILE.format(pair=PROJECT / "topologies" / "pair.yaml"))
        agent = {} if (PROJECT / "target/release/vnet-agent").exists() else {"VNET_AGENT": "/bin/true"}
        self.env = {**os.environ, "PYTHONPATH": str(PROJECT), "VNET_STATE_DIR": str(cwd / "s"), **agent}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli.main", "campaign", *arguments],
            cwd=self.cwd, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def end(self) -> None:
        """Interrupts the processes that a failed test left running; each then takes down its lab."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()

    def __call__(self, *arguments: str, status: int = 0) -> str:
        process = self.start(*arguments)
        out, err = process.communicate()
        assert process.returncode == status, err
        assert "Traceback" not in err
        return out + err

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.dir / "cells.jsonl").read_text().splitlines()]

    def in_flight(self) -> str | None:
        try:
            return str(json.loads((self.dir / "running.json").read_text())["cell"])
        except FileNotFoundError:  # no cell runs at the moment
            return None

    def until(self, condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        """Waits while the process runs, without a time limit of its own; pytest's ends a test that hangs."""
        while not condition():
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()
    left = made.cwd / "s"
    assert not left.is_dir() or not list(left.iterdir())


@pytest.mark.slow
def test_killed_and_resumed_loses_only_the_cell_in_flight(place: Place) -> None:
    process = place.start("run", "small.yaml", "--kernel", "fake")
    place.until(lambda: (place.in_flight() or "").endswith("hold-2s.r1"), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    in_flight = json.loads((place.dir / "running.json").read_text())
    assert "1 of 4 runs complete, 3 left, about" in place("status", "results/small")

    said = place("run", "results/small")
    assert "[1/4]" not in said and "[2/4]" in said and "4 of 4 runs complete" in said
    lines = place.lines()
    ended = {line["cell"]: line for line in lines}
    assert [(e["levels"]["hold"], e["repetition"], e["seed"]) for e in ended.values()] == CELLS
    assert {e["state"] for e in ended.values()} == {"complete"}
    (cut,) = [line for line in lines if line["state"] == "interrupted"]
    assert cut["run_dir"] == in_flight["run_dir"] != ended[cut["cell"]]["run_dir"]
    kept = json.loads((place.dir / in_flight["run_dir"] / "manifest.json").read_text())
    assert kept["state"] in (
        "interrupted",
        "complete",
    )  # the run is complete if the lab had ended before the kill
    assert (place.dir / "report" / "index.html").exists()
    assert not (place.dir / "running.json").exists()
    for line in ended.values():
        assert (place.dir / line["run_dir"] / "summary.json").exists()

    assert "4 of 4 runs complete" in place("run", "small.yaml", "--kernel", "fake")
    assert len(place.lines()) == len(lines)  # nothing was left to do

    place.file.write_text(place.file.read_text().replace("seed: 5", "seed: 6"))
    said = place("run", "small.yaml", "--kernel", "fake", status=3)
    assert "begun with other content" in said
    assert "-seed: 5" in said and "+seed: 6" in said


@pytest.mark.slow
def test_a_campaign_that_has_grown_keeps_its_runs(place: Place) -> None:
    whole = place.file.read_text()
    place.file.write_text(whole.replace("[1 s, 2 s]", "[2 s]").replace("repetitions: 2", "repetitions: 1"))
    place("run", "small.yaml", "--kernel", "fake", "--no-page")
    (first,) = place.lines()
    larger = place.cwd / "larger.yaml"
    larger.write_text(whole.replace("name: small", "name: larger"))
    said = place("run", "larger.yaml", "--kernel", "fake", "--no-page", "--out", "results/small")
    assert "4 of 4 runs complete" in said
    assert place.lines()[0] == first
    assert {(e["levels"]["hold"], e["repetition"], e["seed"]) for e in place.lines()} == set(CELLS)
    assert len(place.lines()) == 4
    assert "4 of 4 runs complete" in place("run", "results/small", "--no-page")
    said = place("run", "small.yaml", "--kernel", "fake", "--no-page", status=3)
    assert "begun with other content" in said, "what has grown is not made small again"


@pytest.mark.slow
def test_expectations_are_judged_without_a_page(place: Place) -> None:
    pair = place.cwd / "pair.yaml"
    pair.write_text((PROJECT / "topologies" / "pair.yaml").read_text() + "\nexpect: [latency_p50 < 1 us]\n")
    text = FILE.format(pair=pair).replace("[1 s, 2 s]", "[1 s]").replace("repetitions: 2", "repetitions: 1")
    place.file.write_text(text)
    said = place("run", "small.yaml", "--kernel", "fake", "--no-page", status=8)
    assert "1 of 1 expectation cannot be told." in said and "1 of 1 runs complete" in said
    assert not (place.dir / "report").exists()
    state = place("status", "results/small", "--json", status=8)
    assert [one["verdict"] for one in json.loads(state)["expectations"]] == ["cannot tell"]
    lines = place("status", "results/small", status=8).splitlines()
    assert lines[1] == "1 of 1 expectation cannot be told." and lines[2].startswith("  cannot tell: ")


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ({}, True),
        ({"parameters": {"a": "2"}}, False),
        ({"time": "virtual"}, False),
        ({"until": {"at_most": 9}}, False),
        ({"files": {"c.yaml": "more", "t.yaml": "other"}}, False),
        (
            {"cells": [{"cell": "1", "topology": "t.yaml", "seed": 2}, {"cell": "2", "topology": "t.yaml"}]},
            False,
        ),
        ({"cells": [{"cell": "1", "topology": "t.yaml", "seed": 1}]}, False),
    ],
)
def test_grown_is_the_same_with_more_cells(change: dict[str, Any], may: bool) -> None:
    one, two = {"cell": "1", "topology": "t.yaml", "seed": 1}, {"cell": "2", "topology": "t.yaml", "seed": 1}
    same = {"parameters": {}, "kernel": "auto", "lab": None, "time": "real", "file": "c.yaml"}
    before = {**same, "cells": [one], "files": {"c.yaml": "text", "t.yaml": "lab"}}
    now = {**same, "cells": [two, one], "files": {"c.yaml": "more", "t.yaml": "lab"}, **change}
    assert grown(before, now) is may


def test_a_campaign_waits_while_another_lab_has_its_name(place: Place) -> None:
    another = State(place.cwd / "s" / "pair", "pair", "fake", place.cwd)
    process = place.start("run", "small.yaml", "--kernel", "fake", "--no-page")
    assert process.stderr is not None
    said = next(line for line in process.stderr if NAME_IN_USE in line)
    assert "waits until that lab has ended" in said and "vnet down" not in said
    another.release()
    out, err = process.communicate()
    assert "4 of 4 runs complete" in out + err
    lines = place.lines()
    assert [line["state"] for line in lines] == ["complete"] * 4
    assert sorted(line["run_dir"] for line in lines) == sorted(
        str(manifest.parent.relative_to(place.dir)) for manifest in place.dir.rglob("manifest.json")
    )


def test_a_torn_last_line_is_a_cell_in_flight(tmp_path: Path) -> None:
    from orchestrator.campaign import journal

    journal.append(tmp_path, {"cell": "a", "state": "complete"})
    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write('{"cell": "b", "sta')
    assert list(journal.latest(tmp_path)) == ["a"]
    journal.append(tmp_path, {"cell": "b", "state": "failed"})
    assert [line["cell"] for line in journal.lines(tmp_path)] == ["a", "b"]


def test_two_processes_cannot_run_one_campaign(tmp_path: Path) -> None:
    from orchestrator.campaign import journal

    refused = pytest.raises(journal.CampaignError, match="another process runs this campaign")
    with journal.locked(tmp_path), refused, journal.locked(tmp_path):
        raise AssertionError("unreachable: the lock is held")


def test_status_of_what_is_no_campaign(place: Place) -> None:
    said = place("status", "nowhere", status=3)
    assert "nowhere" in said and "`vnet campaign run FILE` makes a campaign directory" in said


def test_a_mistake_in_any_cell_is_found_before_the_first_runs(place: Place) -> None:
    place.file.write_text(place.file.read_text().replace("2 s]", "2 m]"))
    assert "hold" in place("run", "small.yaml", "--kernel", "fake", status=3)
    assert not place.dir.exists()


@pytest.mark.slow
def test_out_names_the_campaign_and_results_its_parent(place: Place) -> None:
    place("run", "small.yaml", "--kernel", "fake", "--no-page", "--results", "all")
    assert (place.cwd / "all/small/cells.jsonl").exists()
    said = place("run", "small.yaml", "--kernel", "fake", "--no-page", "--out", "all", status=3)
    assert "all: holds small and no campaign; --out names" in said
    assert "write --results all for campaigns below it" in said
    assert not (place.cwd / "all/cells.jsonl").exists()
