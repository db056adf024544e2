"""Tests that a fork equals its run up to the moment of the fork, is different afterwards, and repeats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from virtual_place import Place, Ran

from orchestrator.verify.difference import packets_of

AT = "hold + 1.5 s"


@pytest.fixture(scope="module")
def run(places: Callable[[str], Place]) -> tuple[Place, Ran]:
    """Returns a run without tables, and its place."""
    place = places("fork")
    return place, place.run()


def forked(place: Place, ran: Ran, *options: str, status: int = 0) -> dict[str, Any]:
    """Returns the answer of `vnet fork --json` for a run; asserts its exit status."""
    argv = ("fork", str(ran.run_dir), "--at", AT, "--raw", "--results", "forks", "--json", *options)
    done = place.vnet(*argv)
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def packets(run_dir: Path) -> list[tuple[int, bytes]]:
    return list(packets_of(run_dir / "pcap" / "all.pcap"))


def test_another_impairment_changes_what_comes_after_and_nothing_before(run: tuple[Place, Ran]) -> None:
    place, ran = run
    found = forked(place, ran, "--event", "{impair: wan, both: {delay: 40 ms}}")
    assert found["before"]["verdict"] == "holds"
    assert found["before"]["packets"] > 100 and found["before"]["arrivals"] > 20
    fork = place.cwd / found["run_dir"]
    kept = json.loads((fork / "fork.json").read_text())
    until = ran.manifest["t0_ns"] + kept["at_ns"]
    before, after = packets(ran.run_dir), packets(fork)
    assert [one for one in before if one[0] < until] == [one for one in after if one[0] < until]
    assert [one for one in before if one[0] >= until] != [one for one in after if one[0] >= until]
    assert place.vnet("verify", str(fork)).returncode == 0


def test_another_seed_draws_other_losses_from_the_moment_on(run: tuple[Place, Ran]) -> None:
    place, ran = run
    seeds = [forked(place, ran, "--seed", str(seed)) for seed in (11, 12)]
    assert [one["before"]["verdict"] for one in seeds] == ["holds", "holds"]
    tails = {tuple(packets(place.cwd / one["run_dir"])) for one in seeds} | {tuple(packets(ran.run_dir))}
    assert len(tails) == 3


def test_a_command_runs_on_a_node_of_the_fork_alone(run: tuple[Place, Ran]) -> None:
    place, ran = run
    found = forked(place, ran, "--event", "{run: 'echo hello | nc -u -w 1 10.50.0.9 9', on: [ear]}")
    assert found["before"]["verdict"] == "holds"
    events = (place.cwd / found["run_dir"] / "raw" / "events.jsonl").read_text()
    assert '"action": "run"' in events and '"ear"' in events
    assert (ran.run_dir / "raw" / "events.jsonl").read_text() == ""


def test_what_cannot_be_forked_is_refused(run: tuple[Place, Ran], tmp_path: Path) -> None:
    place, ran = run
    asked = {
        (): "nothing is to be different",
        ("--event", "{impair: wan, both: {delay: 40}}"): "write",
        ("--event", "{link-down: [nolink]}"): "nolink",
        ("--event", "{at: hold + 1 s, link-down: [wan]}"): "is due before",
        ("--event", "wan"): "is no event of a timeline",
    }
    for options, said in asked.items():
        done = place.vnet("fork", str(ran.run_dir), "--at", AT, "--results", "none", *options)
        assert done.returncode in (2, 3) and said in done.stderr, done.stderr
    late = place.vnet("fork", str(ran.run_dir), "--at", "drain + 50 s", "--seed", "3")
    assert late.returncode == 2 and "the run has ended before" in late.stderr
    absent = place.vnet("fork", str(tmp_path), "--at", AT, "--seed", "3")
    assert absent.returncode == 1 and "no readable manifest.json" in absent.stderr
    assert not (place.cwd / "none").exists()
