"""Tests `vnet inventory`: its output for a running lab, and its error if no lab runs."""

from __future__ import annotations

import json
import os
import select
import signal

import pytest
from ansible_running import PROJECT, Controller

PAIR = str(PROJECT / "topologies" / "pair.yaml")


@pytest.fixture
def pair(controller: Controller) -> Controller:
    controller.vnet("up", PAIR, "--kernel", "fake")
    return controller


def test_groups_by_role_group_kind_and_segment(pair: Controller) -> None:
    found = json.loads(pair.vnet("inventory", "pair").stdout)
    groups = {name: value["hosts"] for name, value in found.items() if name not in ("_meta", "all")}
    assert groups == {
        "role_broker": ["right"],
        "role_client": ["left", "right"],
        "role_utility": ["left"],
        "group_left": ["left"],
        "group_right": ["right"],
        "kind_light": ["left", "right"],
        "segment_lan": ["left", "right"],
    }
    assert set(found["all"]["children"]) == {"ungrouped", *groups}


def test_variables_of_the_lab_and_of_a_node(pair: Controller) -> None:
    # no name is needed, because only one lab runs
    found = json.loads(pair.vnet("inventory", "--list").stdout)
    common = found["all"]["vars"]
    assert (common["ansible_connection"], common["vnet_lab"], common["vnet_kernel"]) == (
        "vnet",
        "pair",
        "fake",
    )
    assert common["vnet_state_dir"] == str(pair.state / "pair")
    node = found["_meta"]["hostvars"]["left"]
    assert (node["vnet_kind"], node["vnet_address"]) == ("light", "10.20.0.1")
    assert node["vnet_segments"] == {"eth0": "lan"}
    assert node["vnet_directory"].endswith("/pair/nodes/left")
    assert json.loads(pair.vnet("inventory", "pair", "--host", "left").stdout) == node


def test_group_names_are_words_that_ansible_takes(controller: Controller) -> None:
    controller.vnet("up", "site.yaml", "--kernel", "fake")
    found = json.loads(controller.vnet("inventory").stdout)
    assert found["group_smart_meter"]["hosts"] == ["smart-meter1", "smart-meter2"]
    assert all(name.replace("_", "").isalnum() for name in found)


def test_a_clone_stands_in_the_inventory(pair: Controller) -> None:
    pair.vnet("add", "pair", "left", "--idle")
    assert json.loads(pair.vnet("inventory").stdout)["group_left"]["hosts"] == ["left", "left2"]


def test_refusals_name_what_there_is(pair: Controller) -> None:
    assert "lab pear: no such lab runs here; running: pair" in pair.vnet("inventory", "pear", status=1).stderr
    said = pair.vnet("inventory", "pair", "--host", "middle", status=1).stderr
    assert 'node "middle": no such node; nodes: left, right' in said
    pair.vnet("up", PAIR, "--kernel", "fake", "--lab", "second")
    said = pair.vnet("inventory", status=2).stderr
    assert "several labs run here: pair, second; name one, or set VNET_LAB=pair" in said


def test_no_lab_at_all(controller: Controller) -> None:
    assert "no lab runs here; `vnet up FILE` starts one" in controller.vnet("inventory", status=1).stderr


def test_a_lab_whose_process_has_died(pair: Controller) -> None:
    processes = json.loads((pair.state / "pair" / "lab.json").read_text())["processes"]
    (lab,) = [p["pid"] for p in processes if p["role"] == "lab"]
    ended = os.pidfd_open(lab)
    os.kill(lab, signal.SIGKILL)
    assert select.select([ended], [], [], 10)[0]
    os.close(ended)
    assert "`vnet down pair` removes it" in pair.vnet("inventory", "pair", status=1).stderr
