"""Tests that a script's network is the one that Mininet would build: addresses, limits, states over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.exchange.mininet import read
from orchestrator.exchange.network import Network

HEAD = """\
import time
from mininet.net import Mininet
from mininet.link import TCLink, TCIntf
from mininet.node import Controller, OVSBridge, RemoteController, OVSSwitch
from mininet.topo import SingleSwitchTopo
"""
PAIR = """\
net = Mininet(link=TCLink)
a, b = net.addHost('a'), net.addHost('b')
link = net.addLink(a, b, bw=10, delay='5ms')
net.start()
"""


def network(tmp_path: Path, script: str) -> Network:
    file = tmp_path / "x.py"
    file.write_text(HEAD + script)
    return read(file)


@pytest.mark.parametrize(
    ("base", "first"),
    [("192.168.5.100/24", "192.168.5.100/24"), ("10.0.0.0/8", "10.0.0.1/8"), ("10.3.0.0", "10.3.0.1/24")],
)
def test_the_first_address_is_the_base_itself_if_it_has_a_host(base: str, first: str, tmp_path: Path) -> None:
    made = network(
        tmp_path, f"net = Mininet(ipBase='{base}')\nnet.addLink(net.addHost('a'), net.addHost('b'))"
    )
    assert made.machines["a"].addresses == {"a-eth0": [first]}


def test_the_address_is_on_the_interface_with_the_lowest_port(tmp_path: Path) -> None:
    script = """\
net = Mininet()
h = net.addHost('h')
net.addLink(h, net.addSwitch('s1'), port1=5)
net.addLink(h, net.addSwitch('s2'), port1=1)
net.start()
print(h.intf())
"""
    assert network(tmp_path, script).machines["h"].addresses == {"h-eth1": ["10.0.0.1/8"]}


def test_a_bandwidth_that_mininet_ignores_is_not_taken_and_said(tmp_path: Path) -> None:
    made = network(tmp_path, PAIR.replace("bw=10", "bw=10000"))
    assert made.wires[0].impairments == {"both": {"delay": "5 ms"}}
    assert "line 8: a-eth0: Mininet ignores bw=10000, outside of 0 to 1000: no rate here too" in made.changed
    raised = network(tmp_path, f"TCIntf.bwParamMax = 20000\n{PAIR.replace('bw=10', 'bw=10000')}")
    assert raised.wires[0].impairments["both"]["rate"] == "10000 Mbit/s"


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ("link.intf1.config(bw=1)", "a-eth0.config"),
        ("net.configLinkStatus('a', 'b', 'down')", "configLinkStatus('a', 'b', 'down')"),
        ("a.cmd('tc qdisc change dev a-eth0 root netem delay 9ms')", "a: `tc qdisc change dev a-eth0"),
        ("net.delLink(link)", "a-eth0<->b-eth0 is taken away"),
    ],
)
@pytest.mark.parametrize("pause", ["time.sleep(5)", "net.pingAll()"])
def test_a_change_after_a_pause_is_said(later: str, said: str, pause: str, tmp_path: Path) -> None:
    made = network(tmp_path, f"{PAIR}{pause}\n{later}\n")
    found = [one for one in made.changed if "after the pause of line 10: from the lab's start on" in one]
    assert len(found) == 1 and found[0].startswith(f"line 11: {said}")
    assert not [one for one in network(tmp_path, f"{PAIR}{later}\n").changed if "pause" in one]


@pytest.mark.parametrize(
    ("script", "learns"),
    [
        ("net = Mininet()\nS = {}", False),
        ("net = Mininet(controller=None)\nS = {}", False),
        ("net = Mininet()\nnet.addController('c0')\nS = {}", True),
        ("net = Mininet(switch=OVSBridge)\nS = {}", True),
        ("net = Mininet()\nS = {'failMode': 'standalone'}", True),
    ],
)
def test_switches_without_a_controller_are_said(script: str, learns: bool, tmp_path: Path) -> None:
    links = "s = net.addSwitch('s1', **S)\nfor n in 'ab': net.addLink(net.addHost(n), s)\nnet.start()"
    made = network(tmp_path, f"{script}\n{links}")
    assert any(one.startswith("s1: without a controller") for one in made.changed) is not learns


def test_the_controller_of_a_topology_is_said_unless_its_switches_learn(tmp_path: Path) -> None:
    script = "net = Mininet(topo=SingleSwitchTopo(2){})\nnet.start()"
    assert not network(tmp_path, script.format("")).left
    assert not network(tmp_path, script.format(", controller=Controller")).left
    remote = network(tmp_path, script.format(", controller=lambda name: RemoteController(name)"))
    assert remote.left == ["line 6: controller <lambda>"]
    none = network(tmp_path, script.format(", controller=None"))
    assert any("without a controller" in one for one in none.changed)


def test_an_interface_of_the_scripts_own_class_is_configured_by_it(tmp_path: Path) -> None:
    script = """\
class Slow(TCIntf):
    def config(self, **params):
        return super().config(**{**params, 'delay': '40ms'})
net = Mininet(intf=Slow)
net.addLink(net.addHost('a'), net.addHost('b'), bw=2)
net.start()
"""
    assert network(tmp_path, script).wires[0].impairments == {"both": {"rate": "2 Mbit/s", "delay": "40 ms"}}


def test_a_node_that_is_taken_out_of_a_list_runs_on(tmp_path: Path) -> None:
    made = network(tmp_path, f"{PAIR}net.hosts.remove(b)\n")
    assert set(made.machines) == {"a", "b"} and len(made.wires) == 1
    written = network(
        tmp_path,
        "net = Mininet()\nS = net.addSwitch('s1')\n"
        + "".join(f"net.addLink(net.addHost('{n}'), S)\n" for n in "ab")
        + "net.switches.clear()\n",
    )
    assert set(written.lans) == {"s1"}
