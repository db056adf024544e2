"""Tests the nodes' /etc/hosts files, which hold the names of all nodes."""

from __future__ import annotations

import os
from pathlib import Path

from contract.plan import Interface, Node
from orchestrator.lab import etc_hosts


def node(name: str, *addresses: str) -> Node:
    cards = [
        Interface(f"eth{i}", f"{name}{i}", "lan", a, 24, "02:00:00:00:00:01", 1500)
        for i, a in enumerate(addresses)
    ]
    return Node(name, name, "light", name, f"vnet-x.{name}", f"vnet/x/{name}", tuple(cards), ())


def test_each_address_of_each_node_has_its_name() -> None:
    nodes = [node("a", "10.0.0.1", "fd00::1"), node("b", "10.0.0.2", "")]
    assert etc_hosts.hosts(nodes) == etc_hosts.LOCAL + "10.0.0.1 a\nfd00::1 a\n10.0.0.2 b\n"


def test_nodes_that_run_see_who_comes_and_goes(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        places = etc_hosts.write(tmp_path / "etc", [node("a", "10.0.0.1"), node("b", "10.0.0.2")])
    finally:
        os.umask(before)
    file = Path(places[etc_hosts.HOSTS])
    with file.open() as held:  # keeps the inode in use, as a mount does
        assert etc_hosts.write(tmp_path / "etc", [node("c", "10.0.0.3")]) == places
        assert held.read() == etc_hosts.LOCAL + "10.0.0.3 c\n"
    assert all(Path(p).stat().st_mode & 0o777 == 0o644 for p in places.values())


def test_the_resolver_knows_the_lab_alone() -> None:
    text = etc_hosts.FIXED["/etc/nsswitch.conf"]
    assert "hosts: files dns\n" in text and "passwd: files\n" in text
    assert etc_hosts.FIXED["/etc/resolv.conf"] == "nameserver 127.0.0.1\n"
