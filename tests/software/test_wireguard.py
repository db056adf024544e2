"""Tests WireGuard in the plan: keys, configurations of both ends, routes, and mistakes in files."""

from __future__ import annotations

import base64
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from contract.plan import Plan, Process
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: tunnels
segments:
  west: {subnet: 10.1.0.0/24}
  east: {subnet: 10.2.0.0/24}
  wan: {subnet: 203.0.113.0/24}
nodes:
  gw: {segment: [west, wan], forward: true, software: {vpn: {wireguard: {address: 10.99.0.1/24, peers: {ge: {allows: [10.2.0.0/24], keepalive: 25 s}}}}}}
  ge: {segment: [east, wan], forward: true, software: {vpn: {wireguard: {address: 10.99.0.2/24, port: 51821, peers: {gw: {allows: [10.1.0.0/24]}}}}}}
  w1: {segment: west}
  e1: {segment: east}
run: {hold: 5 s}
"""  # noqa: E501


def planned(text: str = FILE, seed: int = 1) -> Plan:
    return make_plan(parse("tunnels.yaml", text.encode()), seed=seed)


def process_of(plan: Plan, node: str) -> Process:
    software = next(one for one in plan.nodes if one.name == node).software[0]
    assert software.process is not None
    return software.process


def configuration(plan: Plan, node: str) -> str:
    return next(file.content for file in process_of(plan, node).files if file.path.endswith("tunnels.conf"))


def field(text: str, name: str) -> str:
    found = re.search(rf"^{name} = (.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def test_each_end_has_the_public_key_of_the_other() -> None:
    plan = planned()
    west, east = configuration(plan, "gw"), configuration(plan, "ge")
    for own, other in ((west, east), (east, west)):
        secret = X25519PrivateKey.from_private_bytes(base64.b64decode(field(own, "PrivateKey")))
        public = base64.b64encode(secret.public_key().public_bytes_raw()).decode()
        assert field(other, "PublicKey") == public
    assert configuration(planned(), "gw") == west, "equal seeds give equal keys"
    assert field(configuration(planned(seed=2), "gw"), "PrivateKey") != field(west, "PrivateKey")


def test_an_end_has_the_others_address_and_what_lies_behind_it() -> None:
    plan = planned()
    west, east = configuration(plan, "gw"), configuration(plan, "ge")
    assert field(west, "Endpoint") == "203.0.113.2:51821" and field(east, "Endpoint") == "203.0.113.1:51820"
    assert field(west, "AllowedIPs") == "10.99.0.2/32, 10.2.0.0/24"
    assert field(west, "PersistentKeepalive") == "25" and "PersistentKeepalive" not in east
    subnets = next(f.content for f in process_of(plan, "gw").files if f.path.endswith("subnets"))
    assert subnets == "10.2.0.0/24\n"
    (own,) = next(node for node in plan.nodes if node.name == "gw").software
    assert own.spec["configures"] == "wg0", "so that its routes are no surprise"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("10.99.0.1/24", "10.99.0.1", "is no address with the length of its subnet"),
        ("10.99.0.1/24", "10.99.0.0/24", "is the address of the subnet itself"),
        ("10.99.0.1/24", "10.1.0.9/24", "overlaps the subnet of segment west"),
        ("10.99.0.1/24", "10.98.0.1/24", "gw has 10.98.0.1/24 inside, another subnet"),
        ("10.99.0.2/24", "10.99.0.1/24", "has the same address inside"),
        ("peers: {gw: {allows: [10.1.0.0/24]}}", "peers: {w1: {}}", "w1 has no `wireguard` with the peer ge"),
        ("peers: {gw: {allows: [10.1.0.0/24]}}", "peers: {ge: {}}", "is this end itself"),
        ("peers: {gw: {allows: [10.1.0.0/24]}}", "peers: {}", "peers"),
        ("allows: [10.1.0.0/24]", "allows: [203.0.113.0/24]", "they would enter the tunnel again"),
        ("  w1: {segment: west}", "groups: {w: {count: 2, segment: west, software: "
         "{v: {wireguard: {address: 10.99.0.9/24, peers: [gw]}}}}}\n", "stands at a group"),
    ],
)  # fmt: skip
def test_mistakes(old: str, new: str, said: str) -> None:
    text = FILE.replace(old, new) if "groups" not in new else FILE + new
    with pytest.raises(TopologyError) as refusal:
        planned(text)
    assert said in str(refusal.value)
