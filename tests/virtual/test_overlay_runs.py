"""Tests queues by deadlines, a router that dies, and lost notifications, in virtual time."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_place import PROJECT, Place

from reports.papers.ccc_2011.missed import DEADLINES, FAULTS, Experiment, shares, tables
from reports.rundir import read_run
from reports.study import study_of_run

PAPERS = PROJECT / "topologies/papers"
Found = dict[tuple[str, str], list[float]]


def sooner(text: str, by_s: float, hold_s: float) -> str:
    """Returns the topology text with all events earlier by `by_s` seconds, and with a hold of `hold_s`
    seconds.
    """
    moved = re.sub(
        r"hold \+ (\d+) s",
        lambda m: f"hold + {max(0, float(m[1]) - by_s):g} s" if m[1] != "0" else m[0],
        text,
    )
    return re.sub(r"hold: \d+ s", f"hold: {hold_s:g} s", moved)


def missed(place: Place, text: str, experiment: Experiment, *spans: tuple[float, float]) -> Found:
    """Runs the topology text and returns the percentages of messages that were too late or lost, by lab and
    flow, for each time span.
    """
    (place.cwd / "it.yaml").write_text(text)
    run_dir: Path = place.run("--lab", "it", file="it.yaml").run_dir
    assert len(tables(study_of_run(run_dir))) == 1
    found: Found = {}
    for (lab, flow, _), value in shares(read_run(run_dir), dataclasses.replace(experiment, spans=spans)):
        found.setdefault((lab, flow), []).append(value)
    return found


def test_earliest_deadline_first_misses_fewer_than_first_in_first_out(place: Place) -> None:
    text = sooner((PAPERS / "ccc-2011-edf.yaml").read_text(), 22, 16)
    found = missed(place, text, DEADLINES, (0.5, 8), (10, 16))
    assert found["kernel", "pmu"][0] > 20 and found["fifo", "pmu"][0] > 40
    assert found["fifo", "pmu"][1] > 90, "it is first in, first out in user space too"
    assert found["edf", "pmu"] == [0, 0] and found["edf", "measurements"][0] == 0
    assert found["edf", "measurements"][1] < 30, "a fifth is more than the class carries"
    assert found["drop", "pmu"][1] < 10 and found["drop", "measurements"][1] < 25


@pytest.fixture(scope="module")
def faults(places: Callable[[str], Place]) -> Found:
    text = sooner((PAPERS / "ccc-2011-faults.yaml").read_text(), 35, 36)
    return missed(places("faults"), text, FAULTS, (0, 4), (8, 15), (15, 20), (21, 26), (30, 35))


def test_who_is_served_is_served_again_when_the_router_is_back(faults: Found) -> None:
    assert faults["none", "hrt"][2:] == [0, 0, 0]
    for flow in ("hrt", "lrt", "be"):
        assert faults["dies", flow][2:] == [100, 0, 0]


def test_a_lost_notification_costs_those_who_were_not_told(faults: Found) -> None:
    assert faults["lost", "hrt"] == pytest.approx(faults["none", "hrt"], abs=3), "shares move without it"
    assert faults["none", "be"] == [0] * 5 and faults["lost", "be"][1] > 70
    assert faults["lost", "be"][3] == 0, "they are told as soon as it can be"
    assert faults["lost", "lrt"][1] > 70
