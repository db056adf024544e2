"""Tests that Mininet scripts become topologies without making a network or running a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.plan import Plan
from orchestrator.exchange import to_mininet, writing
from orchestrator.exchange.mininet import read
from orchestrator.exchange.writing import Written
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError, load
from orchestrator.topology.loading import parse

ROUTED = """\
import os, subprocess
from functools import partial
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.node import Node
from mininet.link import TCLink
from mininet.log import setLogLevel, info
from mininet.cli import CLI

class Router(Node):
    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")

class Two(Topo):
    def build(self, delay="5ms", **_opts):
        for i in (1, 2):
            self.addSwitch(f"s{i}")
            self.addHost(f"H{i}", ip=f"192.168.{i}.2/24", defaultRoute=f"via 192.168.{i}.1")
            self.addLink(f"s{i}", f"H{i}", bw=10, delay=delay, loss=1)
        router = self.addHost("r0", cls=Router, ip="192.168.1.1/24")
        self.addLink(router, "s1", intfName1="r0-eth1")
        self.addLink(router, "s2", intfName1="r0-eth2", params1={"ip": "192.168.2.1/24"})

if __name__ == "__main__":
    setLogLevel("info")
    os.system("touch run-on-the-machine")
    subprocess.run(["touch", "run-on-the-machine"])
    net = Mininet(topo=Two(delay="20ms"), controller=None, link=partial(TCLink))
    net.start()
    info(net["H1"].cmd("ping -c 1 192.168.2.2"))
    CLI(net)
    net.stop()
"""


def imported(tmp_path: Path, script: str) -> tuple[Written, Plan, list[str]]:
    file = tmp_path / "Routed.py"
    file.write_text(script)
    network = read(file)
    written = writing.write(network)
    return written, make_plan(parse("routed.yaml", written.text.encode())), network.left


def test_a_routed_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written, plan, left = imported(tmp_path, ROUTED)
    addresses = {(n.name, i.segment): i.address for n in plan.nodes for i in n.interfaces}
    assert addresses["h1", "s1"] == "192.168.1.2" and addresses["r0", "s1"] == "192.168.1.1"
    forward = {n.name: n.forward for n in plan.nodes}
    assert forward == {"h1": False, "h2": False, "r0": True}
    link = next(link for link in plan.links if {link.a, link.b} == {"h1", "s1"})
    both = (link.forward.impairment, link.reverse.impairment)
    assert all((i.delay_ns, i.loss, i.rate_bps) == (20_000_000, 0.01, 10**7) for i in both)
    ways = {n.name: {via for r in n.routes for via in r.via} for n in plan.nodes}
    assert ways["h1"] == {"192.168.1.1"} and len(ways["h2"]) == 1
    assert ways["h2"] == {addresses["r0", "s2"]}
    assert any("ping -c 1" in line for line in left) and sum("on this machine" in line for line in left) == 2
    assert not (tmp_path / "run-on-the-machine").exists()
    assert "node H1 is h1 here" in written.changed


def test_switches_in_a_tree_are_one_subnet(tmp_path: Path) -> None:
    script = "from mininet.topolib import TreeNet\nTreeNet(depth=2, fanout=3)\n"
    _, plan, _ = imported(tmp_path, script)
    assert len(plan.nodes) == 9 and len(plan.segments) == 4 and len({s.subnet for s in plan.segments}) == 1
    assert sum(link.kind == "segments" for link in plan.links) == 3


def test_what_mn_takes_is_taken(tmp_path: Path) -> None:
    script = "from mininet.topo import LinearTopo\ntopos = {'mine': lambda: LinearTopo(k=3)}\n"
    assert len(imported(tmp_path, script)[1].nodes) == 3


def test_our_own_export_comes_back(tmp_path: Path) -> None:
    plan = make_plan(load(Path(__file__).parents[2] / "topologies" / "dumbbell.yaml"))
    _, back, _ = imported(tmp_path, to_mininet.export(plan).text)
    here, there = (
        {(n.name, n.forward, i.address) for n in p.nodes for i in n.interfaces} for p in (plan, back)
    )
    assert here == there
    wire = next(link for link in back.links if link.kind == "nodes")
    assert wire.forward.impairment.rate_bps == 20_000_000 and wire.forward.impairment.limit_packets == 100


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("x = 1\n", "builds no network"),
        ("import mininet.net\n\n1 / 0\n", r"Routed.py:3: fails \(ZeroDivisionError"),
        ("def broken(:\n", "fails .SyntaxError"),
        ("import os\nos._exit(9)\n", "ended with status 9"),
    ],
)
def test_what_builds_nothing_is_refused(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        imported(tmp_path, script)


def test_a_script_that_fails_later_may_stop_at_its_start(tmp_path: Path) -> None:
    script = ROUTED + "    float(net['H1'].cmd('uptime'))\n"
    with pytest.raises(TopologyError, match=r"Routed.py:34: fails \(ValueError.*--stop-at-start"):
        imported(tmp_path, script)
    network = read(tmp_path / "Routed.py", stop_at_start=True)
    assert len(network.machines) == 3 and any("line 30: the script is stopped" in one for one in network.left)


ASKED = """\
from mininet.net import Mininet
from mininet.link import TCLink
from mininet.topo import SingleSwitchReversedTopo

class Named(SingleSwitchReversedTopo):
    def build(self, k=2, **opts):
        super().build(k)
        for of in (lambda: self.linkInfo("h1", "h2"), lambda: self.nodeInfo("h9")):
            try:
                of()
            except KeyError:
                self.addHost(f"none{len(self.hosts())}")

net = Mininet(topo=Named(3), link=TCLink, controller=None)
net.start()
port = net["s1"].intf("s1-eth3")
assert port.link.intf1.node.name == "h1", "the first host is at the last port"
port.ifconfig("down")
assert not port.isUp() and not port.isUp()
assert port.isUp(setUp=True) and port.isUp()
"""


def test_what_a_script_asks_is_answered_as_by_mininet(tmp_path: Path) -> None:
    """Shows that a missing link or node raises KeyError, as in Mininet, and does not end a generator."""
    file = tmp_path / "asked.py"
    file.write_text(ASKED)
    assert {"none3", "none4"} <= read(file).machines.keys()
