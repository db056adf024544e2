"""Tests exports: containerlab's files can be imported again unchanged, Mininet's is a script, and the rest is
reported.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from contract.plan import Plan
from orchestrator.exchange import to_containerlab, to_mininet, writing
from orchestrator.exchange.containerlab import read
from orchestrator.exchange.outgoing import ExportError
from orchestrator.plan.build import make_plan
from orchestrator.topology import load
from orchestrator.topology.loading import parse

TOPOLOGIES = Path(__file__).parents[2] / "topologies"


def planned(name: str) -> Plan:
    return make_plan(load(TOPOLOGIES / f"{name}.yaml"))


@pytest.mark.parametrize("name", ["ring", "dumbbell"])
def test_containerlab_and_back(name: str, tmp_path: Path) -> None:
    plan = planned(name)
    file = tmp_path / "there.clab.yml"
    file.write_text(to_containerlab.export(plan).text)
    back = make_plan(parse("back.yaml", writing.write(read(file)).text.encode()))
    assert {n.name for n in back.nodes} == {n.name for n in plan.nodes}
    assert {(n.name, n.forward) for n in back.nodes} == {(n.name, n.forward) for n in plan.nodes}
    here, there = ({(n.name, i.address) for n in p.nodes for i in n.interfaces} for p in (plan, back))
    assert here == there
    ways = [{(n.name, to, r.via) for n in p.nodes for r in n.routes for to in r.to} for p in (plan, back)]
    everywhere = "0.0.0.0/0"
    assert {way for way in ways[0] if way[1] != everywhere} <= ways[1]


def test_impairments_become_commands_and_what_is_left_is_said() -> None:
    exported = to_containerlab.export(planned("ring"), "alpine")
    assert "tools netem set -n clab-ring-r1 -i eth2 --delay 5ms\n" in exported.text
    assert "image: alpine" in exported.text
    left = "\n".join(to_containerlab.export(planned("every-impairment")).left)
    assert "gemodel" in left and "capture" in left and "timeline" in left and "software" in left


def test_mininet_gets_a_script() -> None:
    text = to_mininet.export(planned("dumbbell")).text
    ast.parse(text)
    assert "net.addSwitch('left', dpid='1')" in text and "net.addSwitch('right', dpid='2')" in text
    assert "net.addLink('r1', 'r2', intfName1='r1-eth1', intfName2='r2-eth1', cls1=TCIntf" in text
    assert "params1={'bw': 20.0, 'delay': '20ms', 'max_queue_size': 100}" in text
    assert "ip addr add 10.1.0.2/24 dev s1-eth0" in text


def test_what_no_other_tool_has_is_refused() -> None:
    with pytest.raises(ExportError, match="is a virtual machine"):
        to_containerlab.export(planned("mqtt-vm"))
    long = (
        b"name: x\nsegments: {much-too-long: {subnet: 10.1.0.0/24}}\nnodes: {a: {segment: much-too-long}}\n"
    )
    with pytest.raises(ExportError, match="more than 10 characters"):
        to_mininet.export(make_plan(parse("x.yaml", long)))
