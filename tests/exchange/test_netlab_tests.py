"""Tests that pings of netlab's validation become expectations, and that each other test is a note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from orchestrator.exchange import writing
from orchestrator.exchange.netlab import read
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

NETWORK = """\
defaults.device: frr
nodes: {r1: , h1: {device: linux}, h2: {device: linux}}
links: [r1-h1, r1-h2]
validate:
"""


def _imported(tests: str, tmp_path: Path) -> tuple[dict[str, Any], str]:
    """Returns the topology's data, which makes a plan, and the notes."""
    file = tmp_path / "x.yml"
    file.write_text(NETWORK + tests)
    network = read(file)
    written = writing.write(network)
    assert not written.problems
    make_plan(parse("x.yaml", written.text.encode()))
    data: dict[str, Any] = yaml.safe_load(written.text)
    return data, "\n".join(network.left)


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        ("""{nodes: [h1], plugin: "ping('h2')"}""", "eventually"),
        ("""{nodes: [h1], plugin: "ping('h2',expect='fail')", wait: 5, description: x}""", "never"),
        ("""{nodes: [h1], exec: ping -c 5 -W 1 -A h2, valid: '"64 bytes" in stdout'}""", "eventually"),
        ("""{nodes: [h1], exec: {linux: ping h2}, valid: {linux: '"64 bytes" not in stdout'}}""", "never"),
    ],
)
def test_a_ping_is_an_expectation(test: str, verdict: str, tmp_path: Path) -> None:
    data, left = _imported(f"  p: {test}\n", tmp_path)
    assert data["expect"] == [{"log": "h1", verdict: "bytes from 10.255.0.6:"}]
    assert "10.255.0.6 ||" in data["nodes"]["h1"]["software"]["check-p"]["command"]
    assert not left


@pytest.mark.parametrize(
    "test",
    [
        """{nodes: [h1], plugin: "ping('h2',af='ipv6')"}""",
        """{nodes: [h1], plugin: "ping('h2',src='r1')"}""",
        """{nodes: [h1], plugin: "ping(nodes.h2.interfaces[0].ipv4)"}""",
        """{nodes: [h1], plugin: "ping('nobody')"}""",
        """{nodes: [h1], plugin: "bgp_neighbor(node.bgp.neighbors,'h2')"}""",
        """{nodes: [h1], plugin: "ping('h2'"}""",
        """{nodes: [h1], plugin: "ping('h2')", level: warning}""",
        """{plugin: "ping('h2')"}""",
        """{nodes: [h1], exec: ping h2}""",
        """{nodes: [h1], exec: ping -s 3000 h2, valid: '"64 bytes" in stdout'}""",
        """{nodes: [h1], exec: ping h2; reboot, valid: '"64 bytes" in stdout'}""",
        """{nodes: [h1], exec: ping h2, valid: '"3 received" in stdout'}""",
        """{nodes: [r1], show: ip route, valid: 'True'}""",
    ],
)
def test_another_test_is_a_note(test: str, tmp_path: Path) -> None:
    data, left = _imported(f"  p: {test}\n", tmp_path)
    assert "expect" not in data and "line 5: validate.p: to be checked by hand" in left


def test_a_ping_of_a_network_that_another_test_changes_is_a_note(tmp_path: Path) -> None:
    ping = """{nodes: [h1], plugin: "ping('h2')"}"""
    data, left = _imported(f"  a: {ping}\n  b: {{nodes: [r1], config: shut}}\n  c: {ping}\n", tmp_path)
    assert len(data["expect"]) == 1
    assert "validate.c" in left and "after validate.b, which changes the network" in left


def test_a_contradiction_is_a_note(tmp_path: Path) -> None:
    one = """  a: {nodes: [h1], plugin: "ping('h2')"}\n"""
    tests = one + one.replace("a:", "b:").replace("'h2'", "'h2',expect='fail'")
    data, left = _imported(tests, tmp_path)
    assert len(data["expect"]) == 1 and "an earlier test expects the contrary" in left


def test_tests_that_are_no_mapping_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(NETWORK.replace("validate:", "validate: [a]"))
    assert "line 4: validate: is no mapping of tests: left out" in read(tmp_path / "x.yml").left


@pytest.mark.parametrize("ends", [("h1", "h3"), ("h3", "h1")])
def test_a_ping_of_a_node_without_a_link_is_a_note(ends: tuple[str, str], tmp_path: Path) -> None:
    source, target = ends
    file = tmp_path / "x.yml"
    file.write_text(
        f"""{NETWORK.replace("h2: {", "h3: {device: linux}, h2: {")}  p: {{nodes: [{source}, h2], """
        f"""plugin: "ping('{target}',expect='fail')"}}\n"""
    )
    written = writing.write(read(file))
    assert not written.problems
    data = yaml.safe_load(written.text)
    make_plan(parse("x.yaml", written.text.encode()))
    assert "h3" not in data["nodes"]
    assert [one["log"] for one in data.get("expect", [])] == (["h2"] if target == "h1" else [])
    said = "\n".join(written.changed)
    assert f"{source} never reaches {target}, of which one is on no network" in said
