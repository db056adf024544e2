"""Tests that `ip -batch` executes the planned text unchanged, in namespaces of this test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="ip (iproute2) is not installed"),
]


def _ip(*arguments: str, text: str = "") -> str:
    done = subprocess.run(["ip", *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def made() -> Iterator[Plan]:
    plan = make_plan(load(TOPOLOGIES / "every-impairment.yaml"), f"ipbatch-{os.getpid()}")
    namespaces = [plan.core_netns, *(node.netns for node in plan.nodes)]
    try:
        _ip("-batch", "-", text="".join(f"netns add {name}\n" for name in namespaces))
        for step in plan.steps:
            if step.tool == "ip":
                _ip("-n", step.netns, "-batch", "-", text=step.text)
        yield plan
    finally:
        for name in namespaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    left = json.loads(_ip("-j", "netns", "list") or "[]")
    assert not {item["name"] for item in left} & set(namespaces)


def _links(netns: str) -> dict[str, Any]:
    return {link["ifname"]: link for link in json.loads(_ip("-n", netns, "-d", "-j", "link", "show"))}


def test_the_core_is_as_planned(made: Plan) -> None:
    core = _links(made.core_netns)
    bridges = {segment.name: segment for segment in made.segments}
    for segment in made.segments:
        bridge = core[segment.bridge]
        assert bridge["mtu"] == segment.mtu and "UP" in bridge["flags"]
        assert bridge["linkinfo"]["info_data"]["stp_state"] == 0
        assert bridge["linkinfo"]["info_data"]["mcast_snooping"] == 0
        assert bridge["inet6_addr_gen_mode"] == ("eui64" if segment.ipv6 else "none")
    for node in made.nodes:
        for card in node.interfaces:
            port = core[card.port]
            assert port["master"] == bridges[card.segment].bridge and "UP" in port["flags"]
            assert port["txqlen"] == 1000
    assert core["wan-a"]["master"] == "br-field" and core["wan-b"]["master"] == "br-office"
    assert core["wan-a"]["link"] == "wan-b"


def test_nodes_have_their_interfaces(made: Plan) -> None:
    for node in made.nodes:
        inside = _links(node.netns)
        for card in node.interfaces:
            assert inside[card.name]["address"] == card.mac
            assert inside[card.name]["mtu"] == card.mtu
            assert inside[card.name]["txqlen"] == 1000
