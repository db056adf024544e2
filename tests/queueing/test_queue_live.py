"""Tests changes of classes in a running lab through the command line: read back, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from virtual_place import Place

LAB = """\
name: live
segments: {a: {subnet: 10.1.0.0/24}, b: {subnet: 10.1.0.0/24}}
nodes: {one: {segment: a}, two: {segment: b}}
links:
  wan:
    between: [a, b]
    forward:
      rate: 10 Mbit/s
      backpressure: true
      queue: {htb: {voice: {dscp: EF, rate: 2 Mbit/s}, rest: {rate: 4 Mbit/s}}}
    reverse: {rate: 10 Mbit/s, backpressure: true, queue: {prio: {high: {pcp: 6}, rest: {}}}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory):
    """Yields a lab of the fake driver; asserts afterwards that no state is left."""
    made = Place(tmp_path_factory.mktemp("live"))
    (made.cwd / "live.yaml").write_text(LAB)
    done = made.vnet("up", "live.yaml", "--kernel", "fake")
    assert done.returncode == 0, done.stderr
    yield made
    assert made.vnet("down", "live").returncode == 0
    assert not list(Path(made.cwd / "state").iterdir())


def bands(place: Place, side: str):
    links = json.loads(place.vnet("inspect", "live", "--json").stdout)["links"]
    queue = links["wan"][side]["read"]["queue"]
    return {band["name"]: band for band in queue["bands"]}


def test_a_class_gets_other_rates(place: Place) -> None:
    words = ("--class", "voice", "--guaranteed", "3 Mbit/s", "--ceiling", "5 Mbit/s")
    done = place.vnet("link", "live", "wan", "--forward", *words)
    assert done.returncode == 0, done.stderr
    voice = bands(place, "forward")["voice"]
    assert (voice["rate_bps"], voice["ceil_bps"]) == (3_000_000, 5_000_000)


def test_a_band_gets_another_length(place: Place) -> None:
    done = place.vnet("link", "live", "wan", "--reverse", "--class", "high", "--class-limit", "12")
    assert done.returncode == 0, done.stderr
    assert bands(place, "reverse")["high"]["limit_packets"] == 12


REFUSED = {
    "unknown class": (
        ["--forward", "--class", "video", "--guaranteed", "1 Mbit/s"],
        "its classes: voice, rest",
    ),
    "too much": (["--forward", "--class", "rest", "--guaranteed", "9 Mbit/s"], "guaranteed"),
    "a rate of a band": (
        ["--reverse", "--class", "high", "--guaranteed", "1 Mbit/s"],
        "classes of prio have no rates",
    ),
    "no class": (["--forward", "--guaranteed", "1 Mbit/s"], "give both"),
    "no rate left": (["--forward", "--rate", "0 bit/s"], "a queue needs a rate"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused(place: Place, name: str) -> None:
    before = bands(place, "forward"), bands(place, "reverse")
    words, rule = REFUSED[name]
    done = place.vnet("link", "live", "wan", *words)
    assert done.returncode != 0 and rule in done.stderr, done.stderr
    assert (bands(place, "forward"), bands(place, "reverse")) == before
