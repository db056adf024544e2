"""Tests that Kathará labs become valid topologies, and that what cannot be converted is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from kathara_lab import LAB, write

from orchestrator.exchange import writing
from orchestrator.exchange.kathara import read
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


def test_routers_hosts_and_networks(tmp_path: Path) -> None:
    network = read(write(tmp_path))
    written = writing.write(network)
    plan = make_plan(parse("imported.yaml", written.text.encode()))
    assert network.name == "two-routers"
    nodes = {node.name: node for node in plan.nodes}
    assert sorted(nodes) == ["pc1", "pc2", "pc3", "r1", "r2"]
    assert nodes["r1"].forward and not nodes["pc1"].forward
    own = {(n.name, i.name): f"{i.address}/{i.prefix}" for n in plan.nodes for i in n.interfaces}
    assert own["r2", "eth0"] == "10.2.0.1/24" or own["r2", "eth1"] == "10.2.0.1/24"
    assert own["pc2", "eth0"] == "10.2.0.77/24" and own["pc1", "eth0"] == "10.1.0.2/24"
    assert [segment.name for segment in plan.segments] == ["c"]
    (link,) = (link for link in plan.links if "pc1" in link.name)
    there, back = sorted((link.forward.impairment.delay_ns, link.reverse.impairment.delay_ns))
    assert (there, back) == (0, 20_000_000)
    assert max(link.forward.impairment.jitter_ns, link.reverse.impairment.jitter_ns) == 1_000_000
    assert [(r.to, r.via) for r in nodes["pc3"].routes] == [(("10.1.0.0/24",), ("10.2.0.1",))]
    assert [(r.to, r.via) for r in nodes["pc2"].routes] == [(("0.0.0.0/0",), ("10.2.0.1",))]
    (config,) = (
        f.content
        for s in nodes["r2"].software
        for f in s.process.files  # type: ignore[union-attr]
        if f.path.endswith("frr.conf")
    )
    assert config.startswith("frr version 6.0\nfrr defaults traditional\n")
    assert "network 10.0.0.0/8 area 0.0.0.0" in config and "log file" not in config and "debug" not in config
    assert "interface lo\n ip address 10.99.0.2/32" in config
    left = "\n".join(network.left)
    for said in (
        "line 9: r2[1]: the MAC 02:00:00:00:00:22",
        "line 10: r2[sysctl]",
        "line 15: watcher: is on none of the lab's networks",
        "image kathara/quagga of r1: nodes have",
        "PC1.startup, line 5: `systemctl start apache2` is not run",
        "r1/var/www/index.html: files are not put",
    ):
        assert said in left
    assert "10.1.0.9" not in left, "a comment"
    assert "node PC1 is pc1 here" in written.changed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"kathara/quagga"', "kathara/p4", r"lab.conf:7: kathara/p4: is a switch whose program"),
        ("r1[1]=B", "r1[1]=A", r"lab.conf:6: r1\[1\]=A: is a second interface on the same network"),
        ("r1[1]=B", "r1(1)=B", r"lab.conf:6: r1\(1\)=B: is no line of a lab.conf"),
        ("r1[1]=B", "../r1[1]=B", r"lab.conf:6: .* is no line of a lab.conf"),
        (LAB, "", "has no machines on networks"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    lab = write(tmp_path)
    (lab / "lab.conf").write_text((lab / "lab.conf").read_text().replace(old, new))
    with pytest.raises(TopologyError, match=said):
        read(lab / "lab.conf")


def test_a_bridge_with_vlans_is_refused_with_its_line(tmp_path: Path) -> None:
    lab = write(tmp_path)
    (lab / "pc2.startup").write_text("# first\nip link add br0 type bridge vlan_filtering 1\n")
    with pytest.raises(TopologyError, match=r"pc2.startup:2: ip link add br0 .*: is a bridge with VLANs"):
        read(lab)


def test_interfaces_of_a_machines_own_file(tmp_path: Path) -> None:
    lab = write(tmp_path)
    (lab / "pc3/etc/network").mkdir(parents=True)
    (lab / "pc3/etc/network/interfaces").write_text(
        "auto eth0\niface eth0 inet static\n  address 10.2.0.79/24\n  gateway 10.2.0.1\n  up sleep 1\n"
    )
    (lab / "pc3.startup").write_text("service networking start\n")
    network = read(lab)
    assert network.machines["pc3"].addresses == {"eth0": ["10.2.0.79/24"]}
    assert [(route.to, route.via) for route in network.machines["pc3"].routes] == [("default", "10.2.0.1")]
    assert "pc3/etc/network/interfaces: `up sleep 1` is not done" in network.left


def test_an_absent_lab_is_said(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"lab.conf: is not there; name a lab"):
        read(tmp_path)


def test_keys_of_a_machine_in_lab_conf(tmp_path: Path) -> None:
    (tmp_path / "pc1.startup").write_text("ip addr add 10.0.0.9/24 dev eth0\n")
    (tmp_path / "lab.conf").write_text(
        'pc1[0]=A\npc1[exec]="ip addr flush dev eth0"\npc1[exec]="ip addr add 10.0.0.1/24 dev eth0"\n'
        'pc1[mem]="128m"\npc1[cpus]="0.5"\nr[0]=A\nr[1]=B\nr[sysctl]="net.ipv4.ip_forward=0"\n'
        'pc2[0]=B\npc2[sysctl]="net.ipv4.ip_forward=1"\npc2[mem]="much"\npc2[cpus]="0"\n'
    )
    made = read(tmp_path)
    pc1, r, pc2 = (made.machines[name] for name in ("pc1", "r", "pc2"))
    assert pc1.addresses == {"eth0": ["10.0.0.1/24"]}
    assert pc1.keys == {"memory_limit": "128 MiB", "cpu_limit": "0.5 cores"} and not pc2.keys
    assert (r.forward, pc2.forward) == (False, True)
    assert made.left == [
        f"line {n}: pc2[{k}]={v}: no counterpart" for n, k, v in [(11, "mem", "much"), (12, "cpus", "0")]
    ]


def test_a_command_in_lab_conf_that_cannot_be_followed_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "lab.conf").write_text('pc1[0]=A\npc2[0]=A\npc1[exec]="ip link set eth0 name lan0"\n')
    with pytest.raises(TopologyError) as raised:
        read(tmp_path)
    assert [problem.line for problem in raised.value.problems] == [3]
