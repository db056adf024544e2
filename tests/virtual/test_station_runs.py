"""Runs stations in virtual time: which frames wait, and how long, with each scheduling algorithm and transmit
policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from reports.rundir import read_run

FILE = PROJECT / "topologies/papers/priority-algorithms.yaml"
LABS = ("one", "strict", "promoting", "alternating", "direct", "when-empty", "after-high")


@pytest.fixture(scope="module")
def run_dir(places: Callable[[str], Place]) -> Path:
    """Returns the directory of one run with all labs, each with a load for two seconds."""
    place = places("stations")
    text = re.sub(
        r"hold \+ (\d+) s",
        lambda m: f"hold + {int(m[1]) % 12 - 1 if 1 <= int(m[1]) % 12 < 3 else 4} s",
        FILE.read_text(),
    )
    text = text.replace("for: 11500 ms", "for: 4 s").replace("hold: 86 s", "hold: 5 s")
    (place.cwd / "stations.yaml").write_text(text)
    return place.run("--lab", "stations", file="stations.yaml").run_dir


def trips_us(run_dir: Path, lab: str) -> pl.Series:
    messages = read_run(run_dir).table("messages")
    assert messages is not None
    return messages.filter(pl.col("class") == lab)["round_trip_ns"] / 1e3


def counters(run_dir: Path, lab: str) -> list[int]:
    """Returns the last counters of a station's log: arrived, passed, dropped, moved."""
    log = (run_dir / f"raw/logs/{lab}-master.stack.log").read_text()
    lines = [line.split() for line in log.splitlines() if line.startswith(("receive ", "transmit "))]
    return [int(word) for word in lines[-1][2:]]


def test_all_round_trips_but_those_of_a_full_driver_are_answered(run_dir: Path) -> None:
    for lab in LABS:
        found = trips_us(run_dir, lab)
        assert found.len() >= 40
        if lab != "direct":
            assert found.null_count() == 0, lab


def test_a_priority_queue_shortens_the_wait(run_dir: Path) -> None:
    mean = {lab: float(trips_us(run_dir, lab).mean() or 0) for lab in LABS}  # type: ignore[arg-type]
    assert mean["strict"] < mean["one"] and mean["when-empty"] < mean["direct"] - 100


def test_c_and_the_strict_policy_let_one_frame_through_for_each_urgent_one(run_dir: Path) -> None:
    arrived, passed, _, _ = counters(run_dir, "alternating")
    assert passed < arrived, "frames of the transfer wait for urgent ones"
    for lab, most in (("alternating", 2.2), ("after-high", 2.2)):
        passed = counters(run_dir, lab)[1]
        assert passed < most * 60 + 40, f"{lab}: about two frames for each round trip and each ARP"
    for lab in ("one", "strict", "promoting", "when-empty"):
        assert counters(run_dir, lab)[1] > 1000, lab


def test_b_promotes(run_dir: Path) -> None:
    assert counters(run_dir, "promoting")[3] > 100
    assert counters(run_dir, "strict")[3] == 0
