"""Tests spellings of network commands in startup scripts, and what a shell runs of a script."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.exchange.network import Machine
from orchestrator.exchange.startup import Startup


def run(text: str) -> tuple[Machine, list[str]]:
    machine = Machine("r1")
    startup = Startup(machine, "r1", lambda line: f"line {line}")
    startup.script(text)
    assert not startup.problems, startup.problems
    return machine, startup.left


ONE = ["10.0.0.1/24"]


@pytest.mark.parametrize(
    "text",
    [
        "timeout 5 ip addr add 10.0.0.1/24 dev eth0", "timeout -k 2 5 ip a a 10.0.0.1/24 dev eth0",
        "sudo -E ip a a 10.0.0.1/24 dev eth0", "sudo -u root ip a a 10.0.0.1/24 dev eth0",
        "nice -n 5 ip a a 10.0.0.1/24 dev eth0", "env A=1 ip a a 10.0.0.1/24 dev eth0",
        "env A=10.0.0.1/24 sh -c 'ip a a $A dev eth0'", "stdbuf -oL ip a a 10.0.0.1/24 dev eth0",
        "sh <<EOF\nip addr add 10.0.0.1/24 dev eth0\nEOF", "echo ip addr add 10.0.0.1/24 dev eth0 | sh",
        "ip -batch - <<EOF\naddr add 10.0.0.1/24 dev eth0\nEOF",
        "echo 'addr add 10.0.0.1/24 dev eth0' > /tmp/x; ip -b /tmp/x",
        "ifconfig eth0 hw ether 02:00:00:00:00:01 10.0.0.1 netmask 255.255.255.0",
        "ip addr add 10.0.0.1 peer 10.0.0.2/24 dev eth0", "ip address add dev eth0 local 10.0.0.1/24 brd +",
        "while true; do sleep 1; done & ip a a 10.0.0.1/24 dev eth0",
        "f() { while true; do sleep 1; done; }; f & ip a a 10.0.0.1/24 dev eth0",
        "while true; do ping -c1 x && break; done; ip a a 10.0.0.1/24 dev eth0",
        "command -v ip > /dev/null || exit 1; ip a a 10.0.0.1/24 dev eth0",
    ],
)  # fmt: skip
def test_an_address_in_any_spelling(text: str) -> None:
    assert run(text)[0].addresses == {"eth0": ONE}


@pytest.mark.parametrize(
    ("text", "to", "via"),
    [
        ("route add default gateway 10.0.0.2", "default", "10.0.0.2"),
        ("ip ro add to 10.5/16 via 10.0.0.2", "10.5.0.0/16", "10.0.0.2"),
        ("ip route append 10.5.0.0/16 via 10.0.0.2", "10.5.0.0/16", "10.0.0.2"),
        ("ip route add 10.5.0.0/16 via 10.0.0.2 table main", "10.5.0.0/16", "10.0.0.2"),
    ],
)
def test_a_route_in_any_spelling(text: str, to: str, via: str) -> None:
    assert [(one.to, one.via) for one in run(text)[0].routes] == [(to, via)]


@pytest.mark.parametrize(
    ("text", "forward", "said"),
    [
        ("sysctl -w net.ipv4.ip_forward=1 net.ipv4.tcp_ecn=1", True, "tcp_ecn=1` is not run"),
        ("echo net.ipv4.ip_forward = 1 >> /etc/sysctl.conf; sysctl -p", True, ""),
        ("sysctl -p", False, "`sysctl -p` is not run"),
        ("echo net.ipv4.ip_forward=1 > /etc/x; sysctl -p /etc/x", True, ""),
    ],
)
def test_settings_of_forwarding(text: str, forward: bool, said: str) -> None:
    machine, left = run(text)
    assert machine.forward is forward and said in "\n".join(left)


@pytest.mark.parametrize(
    "text",
    [
        "while true; do sleep 1; done\nip a a 10.0.0.1/24 dev eth0",
        "while :; do ping -c1 x; done\nip a a 10.0.0.1/24 dev eth0",
        "until false; do sleep 1; done; ip a a 10.0.0.1/24 dev eth0",
        "if true; then while true; do sleep 1; done; fi; ip a a 10.0.0.1/24 dev eth0",
    ],
)
def test_what_follows_an_endless_loop_is_named(text: str) -> None:
    machine, left = run(text)
    assert not machine.addresses
    assert any("`ip a a 10.0.0.1/24 dev eth0` is not run: whether" in one for one in left)


@pytest.mark.parametrize(
    ("text", "queue", "said"),
    [
        ("tc q a dev eth0 root netem rate 1mbit", {"rate": "1000000 bit/s"}, ""),
        ("tc qdisc add dev eth0 root tbf rate 1mbit burst 9k", {"rate": "1000000 bit/s"}, "burst 9k"),
        ("ip link set dev eth0 address 02:00:00:00:00:01 mtu 1400", {}, "the MAC in"),
        ("ifconfig eth0 hw ether 02:00:00:00:00:01", {}, "is not run"),
    ],
)  # fmt: skip
def test_parts_of_a_command_that_do_not_carry_over_are_named(
    text: str, queue: dict[str, Any], said: str
) -> None:
    machine, left = run(text)
    assert machine.queues.get("eth0", {}) == queue and said in "\n".join(left)
