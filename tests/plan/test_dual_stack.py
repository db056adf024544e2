"""Tests networks in which an interface has an address of each family: addresses, routes, paths and software
of both, and mistakes in files.
"""

from __future__ import annotations

import json
from ipaddress import ip_network

import pytest

from contract.codec import from_json, to_json
from contract.plan import Interface, Node, Plan
from contract.plan.family import family, reaching, spoken_to
from orchestrator.lab import etc_hosts, node_config, readback
from orchestrator.plan.build import make_plan
from orchestrator.plan.clone import clones
from orchestrator.plan.paths import Paths
from orchestrator.plan.render import render
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

DUAL = """\
name: dual
segments: {west: {subnet: [10.1.0.0/24, "fd00:1::/64"]}, east: {subnet: [10.2.0.0/24, "fd00:2::/64"]}}
nodes:
  client: {segment: west, software: {ask: {udp: {to: server, push: {size: 100 B, rate: 5 /s}}}}}
  server: {segment: east, software: {in: {udp: {listen: 9000}}}}
  r1: {segment: west, forward: true}
  r2: {segment: east, forward: true}
groups: {other: {count: 2, segment: west}}
links:
  wan: {between: [r1, r2], both: {rate: 10 Mbit/s, delay: 10 ms}}
"""
ALONE = DUAL.replace('[10.1.0.0/24, "fd00:1::/64"]', "10.1.0.0/24").replace(
    '[10.2.0.0/24, "fd00:2::/64"]', "10.2.0.0/24"
)


def plan(text: str) -> Plan:
    return make_plan(parse("dual.yaml", text.encode()))


def node(made: Plan, name: str) -> Node:
    return next(n for n in made.nodes if n.name == name)


def refused(text: str) -> str:
    with pytest.raises(TopologyError) as refusal:
        plan(text)
    return "\n".join(str(problem) for problem in refusal.value.problems)


def target(made: Plan, name: str = "client") -> str:
    (one,) = (software for software in node(made, name).software if software.spec.get("to"))
    return str(one.spec["to"][0]["address"])


def test_interfaces_get_an_address_of_each_family_with_the_same_number() -> None:
    made = plan(DUAL)
    assert [card.addresses for card in node(made, "client").interfaces] == [("10.1.0.1", "fd00:1::1")]
    assert [card.addresses for card in node(made, "r2").interfaces] == [
        ("10.2.0.2", "fd00:2::2"),
        ("10.255.0.2", "fdff::2"),
    ]
    (link,) = made.links
    assert (link.subnet, link.second_subnet) == ("10.255.0.0/30", "fdff::/126")
    assert made.segments[0].subnets == ("10.1.0.0/24", "fd00:1::/64")
    assert all(segment.ipv6 for segment in made.segments)
    assert "10.1.0.0/24, fd00:1::/64" in render(made) and "10.1.0.1, fd00:1::1" in render(made)


def test_a_plan_of_one_family_has_no_field_more_and_one_of_both_is_read_again() -> None:
    assert "second" not in to_json(plan(ALONE))
    made = plan(DUAL)
    assert from_json(Plan, to_json(made)) == made
    assert json.loads(to_json(made))["segments"][0]["second_subnet"] == "fd00:1::/64"


def test_each_family_has_its_routes_and_its_paths() -> None:
    made = plan(DUAL)
    assert {(route.to, route.via) for route in node(made, "client").routes} == {
        (("0.0.0.0/0",), ("10.1.0.2",)),
        (("::/0",), ("fd00:1::2",)),
    }
    paths = Paths.of(made)
    assert paths.addresses_of("server", "client") == ["10.2.0.1", "fd00:2::1"]
    for address in ("10.2.0.1", "fd00:2::1"):
        way = paths.to("client", address)
        assert way is not None and way.nodes == ("client", "r1", "r2", "server")
        assert {family(one) for one in way.addresses} == {family(address)}


def test_written_default_routes_are_of_both_families() -> None:
    made = plan(
        DUAL.replace("name: dual", "name: dual\nrouting: none").replace(
            "client: {", "client: {routes: [{to: default, via: r1}], "
        )
    )
    assert [route.to for route in node(made, "client").routes] == [("0.0.0.0/0",), ("::/0",)]


def test_software_takes_the_first_family_of_the_list_or_the_one_that_it_names() -> None:
    assert target(plan(DUAL)) == "10.2.0.1"
    turned = DUAL.replace('[10.1.0.0/24, "fd00:1::/64"]', '["fd00:1::/64", 10.1.0.0/24]')
    turned = turned.replace('[10.2.0.0/24, "fd00:2::/64"]', '["fd00:2::/64", 10.2.0.0/24]')
    made = plan(turned)
    assert target(made) == "fd00:2::1"
    assert made.links[0].subnet == "fdff::/126", "links follow the first list"
    assert target(plan(DUAL.replace("to: server,", "to: server, family: ipv6,"))) == "fd00:2::1"


def test_templates_have_the_addresses_of_each_family() -> None:
    text = DUAL.replace(
        "ask: {", 'show: {command: "echo {{ addresses4.server }} {{ addresses6.server }}"}, ask: {'
    )
    (show,) = (s for s in node(plan(text), "client").software if s.name == "show")
    assert show.process is not None and show.process.argv[-1] == "echo 10.2.0.1 fd00:2::1"


def test_fixed_addresses_of_one_or_both_families() -> None:
    both = plan(DUAL.replace("client: {", 'client: {address: ["fd00:1::9", 10.1.0.7], '))
    assert node(both, "client").interfaces[0].addresses == ("10.1.0.7", "fd00:1::9")
    six = plan(DUAL.replace("client: {", 'client: {address: "fd00:1::1", '))
    assert node(six, "client").interfaces[0].addresses == ("10.1.0.1", "fd00:1::1")
    addresses = [a for n in six.nodes for card in n.interfaces for a in card.addresses]
    assert len(set(addresses)) == len(addresses)


def test_agents_and_hosts_files_get_both_addresses_and_the_readback_compares_them() -> None:
    made = plan(DUAL)
    (card,) = node_config.network(node(made, "client"))["interfaces"]
    assert card["second"] == "fd00:1::1" and card["second_prefix"] == 64
    lines = etc_hosts.hosts(made.nodes).splitlines()
    assert {"10.2.0.1 server", "fd00:2::1 server"} <= set(lines)
    client = node(made, "client")
    read = {**card, "up": True, "offloads": {}}
    answer = {
        "hostname": "client",
        "interfaces": [read],
        "routes": [{"to": list(r.to), "via": list(r.via)} for r in client.routes],
    }
    assert readback.agents([client], {"client": answer}) == []
    (one,) = readback.agents([client], {"client": {**answer, "interfaces": [{**read, "second": None}]}})
    assert one.place == "nodes.client.eth0.second" and one.requested == "fd00:1::1"


def test_the_agent_of_a_node_with_one_family_is_told_nothing_more() -> None:
    (card,) = node_config.network(node(plan(ALONE), "client"))["interfaces"]
    assert set(card) == {"name", "address", "prefix", "mtu", "mac"}


def test_a_clone_gets_free_addresses_of_both_families() -> None:
    made = plan(DUAL)
    (clone,) = clones(made, {}, "other", 1)
    (card,) = clone.node.interfaces
    assert card.addresses == ("10.1.0.5", "fd00:1::5")


def test_routers_of_frr_speak_both_versions_on_one_interface() -> None:
    text = DUAL.replace("name: dual", "name: dual\nrouting: none")
    text = text.replace(
        "forward: true}", "forward: true, software: {router: {frr: {ospf: {}, bgp: {as: 1}}}}}"
    )
    (router,) = node(plan(text), "r1").software
    assert router.process is not None
    files = {file.path.split("/")[-1]: file.content for file in router.process.files}
    config = files["frr.conf"]
    assert "ip ospf area 0" in config and "ipv6 ospf6 area 0" in config
    assert "neighbor 10.255.0.2 remote-as 1" in config and "neighbor fdff::2 activate" in config
    assert router.process.env["DAEMONS"] == "zebra ospfd ospf6d bgpd"
    assert files["routes"].split() == sorted(
        ["10.1.0.0/24", "10.2.0.0/24", "10.255.0.0/30", "fd00:1::/64", "fd00:2::/64", "fdff::/126"]
    )
    assert files["costs"] == "10.1.0.0/24 [1]\n10.2.0.0/24 [2]\n10.255.0.0/30 [1]\n"
    assert files["costs6"] == "fd00:1::/64 [1]\nfd00:2::/64 [2]\nfdff::/126 [1]\n"


def test_names_have_an_address_of_each_family() -> None:
    text = DUAL.replace("ask: {", "dns: {dns: {domain: lab.test}}, ask: {")
    (dns,) = (s for s in node(plan(text), "client").software if s.name == "dns")
    assert dns.process is not None
    config = dns.process.files[0].content
    assert "host-record=server.lab.test,10.2.0.1\n" in config
    assert "host-record=server.lab.test,fd00:2::1\n" in config
    assert dns.spec["names"] == 6


def test_a_network_of_one_family_gets_the_other_where_routing_says_so() -> None:
    text = ALONE.replace("name: dual", "name: dual\nrouting: {family: both}")
    (link,) = plan(text).links
    assert (link.subnet, link.second_subnet) == ("10.255.0.0/30", "fdff::/126")
    assert node(plan(text), "r1").interfaces[0].second == "", "its segment has one subnet"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"fd00:1::/64"]', "10.3.0.0/24]", "has two entries of one family"),
        ('"fd00:2::/64"]', '"fd00:1::/64"]', "overlaps fd00:1::/64 of segment west"),
        ("[r1, r2],", "[r1, r2], subnet: 172.16.0.0/30,", "have addresses of IPv6, and no segment"),
        ("client: {", 'client: {address: [10.1.0.7, "fd00:9::1"], ', "is not a host's address in fd00:1::"),
        ("client: {", "client: {mtu: 1000, ", "is less than 1280"),
        ("to: server,", "to: server, family: ipx,", "family"),
    ],
)  # fmt: skip
def test_mistakes_of_two_families_are_refused(old: str, new: str, said: str) -> None:
    assert said in refused(DUAL.replace(old, new, 1))


def test_a_family_that_a_side_does_not_have_is_refused() -> None:
    text = DUAL.replace('[10.2.0.0/24, "fd00:2::/64"]', "10.2.0.0/24")
    assert "server has no address of it" in refused(text.replace("to: server,", "to: server, family: ipv6,"))
    plan(text)  # the address family that both nodes have


def test_joined_segments_have_the_same_list() -> None:
    text = DUAL.replace("east: {subnet: ", "more: {subnet: 10.1.0.0/24}, east: {subnet: ").replace(
        "links:\n", "links:\n  join: {between: [west, more]}\n"
    )
    assert "a link joins it to a segment with 10.1.0.0/24 and fd00:1::/64" in refused(text)


def test_an_address_is_chosen_by_subnet_then_by_family() -> None:
    def card(address: str, prefix: int, second: str = "", second_prefix: int = 0) -> Interface:
        return Interface(
            "eth0", "p", "s", address, prefix, "m", 1500, second=second, second_prefix=second_prefix
        )

    dual = [card("10.0.0.1", 24, "fd00::1", 64)]
    assert spoken_to(dual, [card("fd00::2", 64)]) == "fd00::1"
    assert spoken_to(dual, [card("10.9.0.2", 24, "fd00::2", 64)]) == "fd00::1", "a shared subnet comes first"
    assert spoken_to(dual, [card("10.9.0.2", 24, "fd01::2", 64)]) == "10.0.0.1"
    assert reaching(dual, [card("10.9.0.2", 24)], "IPv6") is None
    assert ip_network(dual[0].faces[1].subnet) == ip_network("fd00::/64")
