"""Tests `disconnect`: each link is cut by itself at random times that follow from the seed."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest

from contract.plan import Event
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: cuts
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
groups: {{station: {{count: {count}, segment: lan}}}}
links: {{access: {{between: [station, lan]}}}}
timeline:
  - {{at: hold + 10 s, disconnect: access, up: 5 s, down: 1 s, for: 1000 s}}{more}
run: {{hold: 2000 s}}
"""


def events(seed: int = 1, count: int = 2, more: str = "") -> list[Event]:
    topology = parse("cuts.yaml", FILE.format(count=count, more=more).encode())
    return list(make_plan(topology, seed=seed).events)


def cuts(found: list[Event], link: str) -> list[tuple[int, int]]:
    """Returns the times at which a link goes down and up again, in turns."""
    of_link = [event for event in found if event.targets == (link,)]
    assert [e.action for e in of_link] == ["link-down", "link-up"] * (len(of_link) // 2)
    times = [event.at_ns for event in of_link]
    return list(zip(times[::2], times[1::2], strict=True))


def test_the_seed_fixes_the_cuts() -> None:
    assert events() == events() and events() != events(seed=2)


def test_links_are_cut_each_by_itself_and_a_further_link_or_event_changes_none() -> None:
    found = events()
    assert cuts(found, "access-station1") != cuts(found, "access-station2")
    assert cuts(events(count=3), "access-station1") == cuts(found, "access-station1")
    more = "\n  - {at: hold + 1 s, link-down: access-station2, for: 1 s}"
    assert cuts(events(more=more), "access-station1") == cuts(found, "access-station1")


def test_the_event_ends_with_all_links_mended() -> None:
    for seed in range(5):
        for link in ("access-station1", "access-station2"):
            found = cuts(events(seed), link)
            assert found[0][0] >= 10 * 10**9 and found[-1][1] <= 1010 * 10**9
            assert all(down < up for down, up in found) and all(a[1] < b[0] for a, b in pairwise(found))


@pytest.mark.parametrize(("which", "mean_s"), [("up", 5.0), ("down", 1.0)])
def test_times_are_exponential_with_the_means_of_the_file(which: str, mean_s: float) -> None:
    """Shows that the mean and the standard deviation of the times are equal, as for an exponential
    distribution, and are those of the file.
    """
    drawn, all_cuts = list[int](), events(count=30)
    for n in range(1, 31):
        found = cuts(all_cuts, f"access-station{n}")
        ups = [b[0] - a[1] for a, b in pairwise(found)]
        downs = [up - down for down, up in found[:-1]]
        drawn += ups if which == "up" else downs
    seconds = [ns / 1e9 for ns in drawn]
    assert len(seconds) > 4000
    assert statistics.mean(seconds) == pytest.approx(mean_s, rel=0.06)
    assert statistics.stdev(seconds) == pytest.approx(mean_s, rel=0.08)
