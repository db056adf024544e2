"""Tests forms of other tools' files that are easily read as something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.exchange import compose, containerlab, mahimahi, mininet
from orchestrator.exchange.network import Machine
from orchestrator.exchange.startup import Startup
from orchestrator.topology import TopologyError


def run(text: str) -> tuple[Machine, list[str]]:
    machine = Machine("m")
    startup = Startup(machine, "r1", lambda line: f"line {line}")
    startup.script(text)
    return machine, startup.left


@pytest.mark.parametrize(
    "text",
    ["ip link s eth0 down", "ip l set down dev eth0", "ip link set dev eth0 down", "ifconfig eth0 down"],
)
def test_every_way_to_take_an_interface_down(text: str) -> None:
    machine, left = run(text)
    assert machine.down == {"eth0"} and not left


def test_what_follows_a_sleep_is_said() -> None:
    machine, left = run(
        "ip link set eth0 up; sleep 5\nip link set eth0 down; ip addr add 10.0.0.1/24 dev eth1"
    )
    assert machine.down == {"eth0"}
    assert left == ["line 2: `ip link set eth0 down` and what follows, after a `sleep`: at once here"]
    assert not run("ip link set eth0 down; sleep 5; ping -c 1 10.0.0.2 || true")[1][1:]
    background = run("(sleep 5; tc qdisc add dev eth0 root netem delay 9ms) &")[1]
    assert len(background) == 1 and "after a `sleep`" in background[0]


@pytest.mark.parametrize("text", ["ip link set eth0 name lan0", "ip -4 l set dev eth0 down name lan0"])
def test_a_renamed_interface_is_refused(text: str) -> None:
    startup = Startup(Machine("m"), "r1", lambda line: f"line {line}")
    startup.script(f"ip link set eth0 up\n{text}\n")
    assert [(line, rule) for line, _, rule, _ in startup.problems] == [
        (2, "renames an interface, which cannot be taken over")
    ]


def test_an_interface_without_arp_is_said() -> None:
    assert run("ip link set eth0 txqueuelen 10 arp off")[1] and not run("ip link set eth0 arp on up")[1]


def test_words_before_the_device_count() -> None:
    machine, left = run(
        "ip link add br0 type bridge; ip link set mtu 1300 dev eth0; ip link set master br0 dev eth1"
    )
    assert machine.mtus == {"eth0": 1300} and machine.bridges["br0"].ports == ["eth1"] and not left


def test_ifconfig_sets_a_mask_and_takes_up_and_removes() -> None:
    machine, left = run("ifconfig eth0 down; ifconfig eth0 10.0.0.1; ifconfig eth0 netmask 255.255.255.0")
    assert machine.addresses == {"eth0": ["10.0.0.1/24"]} and not machine.down and not left
    assert not run("ifconfig eth0 10.0.0.1/24; ifconfig eth0 inet 0")[0].addresses["eth0"]


def test_a_second_qdisc_is_an_error_and_a_change_sets_netem_anew() -> None:
    head = "tc qdisc add dev eth0 root netem delay 5ms loss 1% rate 1mbit; "
    kept = {"delay": "5 ms", "loss": "1 %", "rate": "1000000 bit/s"}
    assert run(f"{head}tc qdisc add dev eth0 root netem delay 9ms || true")[0].queues["eth0"] == kept
    changed = run(f"{head}tc qdisc change dev eth0 root netem delay 9ms")[0].queues["eth0"]
    assert changed == {"delay": "9 ms", "rate": "1000000 bit/s"}


@pytest.mark.parametrize("test", ["ip link show eth9", "ip -o link show eth1 | grep -q UP", "ifconfig eth1"])
def test_what_a_listing_says_is_not_known(test: str) -> None:
    machine, left = run(f"if {test}; then ip addr add 10.0.0.1/24 dev eth0; fi")
    assert not machine.addresses and "whether it would run is not known" in left[-1]


def test_mahimahi_within_the_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("mm-delay 5 sh -c 'mm-delay 9 ls'\n")
    with pytest.raises(TopologyError, match=r"x.sh:1: .*has shells within its program"):
        mahimahi.read(tmp_path / "x.sh")


def test_mahimahi_with_one_direction_only(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("mm-loss downlink 0.1\n")
    assert mahimahi.read(tmp_path / "x.sh").wires[0].impairments == {"reverse": {"loss": "10 %"}}


@pytest.mark.parametrize(("count", "names"), [("0", ["b"]), ('"2"', ["a-1", "a-2", "b"])])
def test_replicas(count: str, names: list[str], tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(f"services: {{a: {{image: x, deploy: {{replicas: {count}}}}}, b: {{image: x}}}}\n")
    network = compose.read(file)
    assert sorted(network.machines) == names
    assert any("has no replica" in line for line in network.left) is (count == "0")
    file.write_text("services: {a: {image: x, scale: many}}\n")
    with pytest.raises(TopologyError, match="no number of replicas"):
        compose.read(file)


def test_mappings_of_containerlab_are_joined(tmp_path: Path) -> None:
    file = tmp_path / "x.clab.yml"
    file.write_text(
        "name: x\ntopology:\n  defaults: {kind: linux, sysctls: {net.ipv4.ip_forward: 1}}\n"
        "  nodes: {a: {sysctls: {net.core.x: 1}}, b: {}}\n  links: [{endpoints: ['a:eth1', 'b:eth1']}]\n"
    )
    assert containerlab.read(file).machines["a"].forward


def test_classes_with_parameters_of_mininet(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "from mininet.net import Mininet\nfrom mininet.link import TCLink\n"
        "from mininet.node import CPULimitedHost\n"
        "from mininet.util import custom, customClass, natural\n"
        "net = Mininet(host=custom(CPULimitedHost, cpu=.5), link=custom(TCLink, bw=10))\n"
        "a, b = [net.addHost(one) for one in sorted(('h10', 'h2'), key=natural)]\n"
        "net.addLink(a, b)\nnet.addLink(a, b, cls=customClass({'tc': TCLink}, 'tc,bw=20'))\nnet.start()\n"
    )
    network = mininet.read(file)
    assert [one.impairments["both"]["rate"] for one in network.wires] == ["10 Mbit/s", "20 Mbit/s"]
    assert {one.keys["cpu_limit"] for one in network.machines.values()} == {"0.5 cores"}
    assert list(network.machines) == ["h2", "h10"]
