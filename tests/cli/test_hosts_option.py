"""Tests `--hosts` through the real command line: hosts of the inventory in place of the file's, and refused
values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from command_line import TOPOLOGIES

PAIR = str(TOPOLOGIES / "pair.yaml")
CAMPAIGN = str(TOPOLOGIES / "mqtt-qos-campaign.yaml")
INVENTORY = """lab_hosts:
  hosts:
    lab1: {ansible_connection: local, vnet_cores: 2, vnet_memory: 4 GB}
    lab2: {ansible_user: root, vnet_cores: 2, vnet_memory: 4 GB}
"""


def test_hosts_of_the_inventory_in_plan_and_check(vnet: Any, tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "hosts.yml").write_text(INVENTORY)
    plan = json.loads(vnet("plan", PAIR, "--hosts", "lab1,lab2", "--json").stdout)
    assert [(host["name"], host["machine"]) for host in plan["hosts"]] == [
        ("lab1", ""),
        ("lab2", "ssh://root@lab2"),
    ]
    assert {node["host"] for node in plan["nodes"]} <= {"lab1", "lab2"}
    assert "Where the parts stand" in vnet("plan", PAIR, "--hosts", "all").stdout
    assert "good: 2 nodes" in vnet("check", PAIR, "--hosts", "lab2").stdout
    said = vnet("plan", PAIR, "--hosts", "lab3", status=3).stderr
    assert '--hosts: "lab3": is not in inventory/hosts.yml' in said and 'did you mean "lab' in said


def test_hosts_that_cannot_be_meant(vnet: Any) -> None:
    assert "names hosts once each" in vnet("plan", PAIR, "--hosts", "a,,b", status=2).stderr
    assert "--hosts: applies to one lab" in vnet("check", CAMPAIGN, "--hosts", "all", status=2).stderr
