"""Tests `vnet apply` on running labs of the fake driver: the difference is printed, then made, and what a
running lab cannot change is refused before anything is done.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

FILE = """\
name: field
parameters: {delay: {type: duration, default: 20 ms}, clients: {type: int, default: 2}}
segments: {lan: {subnet: 10.20.0.0/24}, wan: {subnet: 10.20.0.0/24}}
nodes:
  server: {segment: wan, software: {idle: {command: sleep 1000}}}
groups:
  client: {count: "${clients}", segment: lan}
links:
  way: {between: [lan, wan], both: {delay: "${delay}", rate: 1 Mbit/s}}
run: {hold: 1 s}
"""


@pytest.fixture
def field(vnet: Any) -> Any:
    """Returns a command line with the lab `field` up."""
    (vnet.cwd / "field.yaml").write_text(FILE)
    vnet("up", "field.yaml", "--kernel", "fake")
    return vnet


def inspected(vnet: Any) -> Any:
    return json.loads(vnet("inspect", "field", "--json").stdout)


def changed(vnet: Any, old: str, new: str) -> None:
    assert old in FILE
    (vnet.cwd / "field.yaml").write_text(FILE.replace(old, new))


def test_a_lab_that_is_as_its_file_says_is_left_alone(field: Any) -> None:
    assert "lab field: is as field.yaml says" in field("apply", "field.yaml").stderr


def test_a_link_is_changed_after_its_plan_is_shown(field: Any) -> None:
    said = field("apply", "field.yaml", "-p", "delay=50ms", "--dry-run").stderr
    assert "link way: forward 20 ms, 1 Mbit/s -> 50 ms, 1 Mbit/s" in said
    assert "nothing was changed" in said
    assert inspected(field)["links"]["way"]["forward"]["requested"]["delay_ns"] == 20_000_000
    done = json.loads(field("apply", "field.yaml", "-p", "delay=50ms", "--json").stdout)
    assert done["made"] and [one["op"] for one in done["changes"]] == ["link"]
    for side in ("forward", "reverse"):
        assert inspected(field)["links"]["way"][side]["requested"]["delay_ns"] == 50_000_000
    assert "is as field.yaml says" in field("apply", "field.yaml", "-p", "delay=50ms").stderr


def test_what_was_changed_by_hand_goes_back_to_the_file(field: Any) -> None:
    field("link", "field", "way", "--loss", "5 %", "--down")
    field("set", "field", "client1", "--mtu", "1400", "--hostname", "other")
    said = field("apply", "field.yaml").stderr
    assert "set client1: hostname client1, mtu 1500" in said and "; up" in said
    link = inspected(field)["links"]["way"]
    assert not link["down"] and link["forward"]["requested"]["loss"] == 0
    assert "is as field.yaml says" in field("apply", "field.yaml").stderr


def test_nodes_come_and_go(field: Any) -> None:
    said = field("apply", "field.yaml", "-p", "clients=4").stderr
    assert "add client3  10.20.0.4" in said and "2 changes, done" in said
    assert set(inspected(field)["nodes"]) == {"server", "client1", "client2", "client3", "client4"}
    assert "remove client2, client3, client4" in field("apply", "field.yaml", "-p", "clients=1").stderr
    assert set(inspected(field)["nodes"]) == {"server", "client1"}


def test_a_limit_is_set(field: Any) -> None:
    changed(field, 'count: "${clients}"', 'count: "${clients}", cpu_limit: 0.5 cores')
    assert "set client1: cpu limit cores 0.5" in field("apply", "field.yaml").stderr
    assert inspected(field)["nodes"]["client2"]["limits"]["cpu_cores"] == 0.5


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("sleep 1000", "sleep 2000", "nodes.server: other software"),
        ("subnet: 10.20.0.0/24", "subnet: 10.20.0.0/24, mtu: 1400", "segments: differ"),
        ("run:", "captures: {c: {at: link way}}\nrun:", "captures: differ"),
        ("[lan, wan]", "[wan, lan]", "links.way: joins other ends"),
        ("links:", "links:\n  own: {between: [client, lan], both: {loss: 1 %}}", "is new"),
    ],
)
def test_what_a_running_lab_keeps_is_refused_as_a_whole(field: Any, old: str, new: str, place: str) -> None:
    changed(field, old, new)
    before = inspected(field)
    said = field("apply", "field.yaml", "-p", "delay=50ms", status=1).stderr
    assert place in said and "`vnet down field` and `vnet up field.yaml`" in said
    assert inspected(field) == before


def test_a_lab_that_does_not_run_and_a_bad_file_are_named(field: Any) -> None:
    assert "no such lab runs here" in field("apply", "field.yaml", "--lab", "other", status=1).stderr
    (field.cwd / "field.yaml").write_text("name: field\nsegmants: {}\n")
    assert "field.yaml:2" in field("apply", "field.yaml", status=3).stderr
