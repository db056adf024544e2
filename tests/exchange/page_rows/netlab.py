"""Holds the cases of the section on netlab's topologies."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import netlab

from . import Case, Tool, both, imported, network, refused, said, silent

TOPOLOGY = """\
name: lab
message: hello
defaults.device: frr
module: [ospf, bgp]
bgp.as: 65000
#file
groups:
  edge: {members: [r3], vars: {}}
  #groups
nodes:
  r1: {id: 1}
  r2: {id: 2}
  r3: {id: 3}
  h1: {device: linux, id: 9}
  h2: {device: linux, id: 10}
  sw: {device: bridge}
links:
- r1-r2
- {r2: {}, r3: {}, prefix: 10.3.0.0/24}
- {r3: {}, h1: {}, h2: {}, prefix: 10.4.0.0/24}
- r1-sw
#links
"""
LINK = "{r2: {}, r3: {}, prefix: 10.3.0.0/24}"
LAN = "{r3: {}, h1: {}, h2: {}, prefix: 10.4.0.0/24}"


def key(before: str, new: str) -> Case:
    """Returns a case of the second link with two texts of keys."""
    return network(
        LINK,
        LINK.replace("}, prefix", f"}}, {new}, prefix"),
        LINK.replace("}, prefix", f"}}, {before}, prefix"),
    )


def link(text: str) -> tuple[str, str]:
    return LINK, f"{{r2: {{}}, r3: {{}}, {text}, prefix: 10.3.0.0/24}}"


def interface(before: str, new: str) -> Case:
    return network(
        LINK, LINK.replace("r2: {}", f"r2: {{{new}}}"), LINK.replace("r2: {}", f"r2: {{{before}}}")
    )


def of_interface(text: str) -> tuple[str, str]:
    return LINK, LINK.replace("r2: {}", f"r2: {{{text}}}")


def node(text: str, name: str = "r2") -> tuple[str, str]:
    number = {"r1": 1, "r2": 2, "r3": 3}[name]
    return f"{name}: {{id: {number}}}", f"{name}: {{id: {number}, {text}}}"


def test(text: str) -> str:
    return f"#links\nvalidate: {{t: {{{text}}}}}\n"


ROWS = {
    "node of device `frr`": [
        network("device: linux", "device: frr"), network("device: linux", "role: host", "device: frr"), network("device: linux", "device: none, role: router", "device: none"),
        network("{r2: {}, r3: {}", "{r1: {}, r3: {}"), network("sw: {device: bridge}", "sw: {device: linux}"),
    ],
    "`groups`: members as lists": [
        network("edge: {members: [r3], vars: {}}", "edge: {members: [r3], bgp.as: 65001}", "edge: {members: [r2], bgp.as: 65001}"),
        network("edge: {members: [r3], vars: {}}", "edge: {members: ['r[12]'], bgp.as: 65001}", "edge: {members: ['r[13]'], bgp.as: 65001}"),
        network("edge: {members: [r3], vars: {}}", "edge: {members: ['~r.'], bgp.as: 65001}", "edge: {members: ['~.3'], bgp.as: 65001}"),
        network("edge: {members: [r3], vars: {}}", "in: [r2]\n  edge: {members: [in], bgp.as: 65001}", "in: [r1]\n  edge: {members: [in], bgp.as: 65001}"),
        network("edge: {members: [r3], vars: {}}\n  #groups\nnodes:\n  r1: {id: 1}", "g: {bgp.as: 65001}\nnodes:\n  r1: {id: 1, group: g}", "g: {bgp.as: 65001}\nnodes:\n  r1: {id: 1, group: edge}"),
        network("  edge: {members: [r3], vars: {}}\n  #groups\nnodes:\n  r1: {id: 1}\n", "  auto: {_auto_create: true, members: [r1]}\nnodes:\n",
                "  auto: {_auto_create: true, members: [r1], device: linux}\nnodes:\n"),
        network("#file", "defaults.groups.all: {members: [r1], bgp.as: 65001}", "defaults.groups.all: {members: [r1], bgp.as: 65002}"),
        network("#groups", "as65000: {mtu: 1400}", "as65001: {mtu: 1400}"),
        network("#groups", "frr: {mtu: 1400}", "linux: {mtu: 1400}"),
    ],
    "`module`: `ospf`, `bgp`": [
        network("module: [ospf, bgp]", "module: [ospf]"), network("65000", "65001"),
        network("bgp.as: 65000", "bgp.as_list: {65000: {members: [r1, r2]}, 65001: {members: [r3]}}", "bgp.as_list: {65000: {members: [r1]}, 65001: {members: [r2, r3]}}"),
        network(*node("module: [ospf]")), network(*node("bgp.as: 65007")), network("#groups", "g: {members: [r1], module: [ospf], bgp.as: 65003}"),
    ],
    "links as `a-b-c`": [
        network("- r1-r2\n", "- r1-r2-r3\n"), network("- r1-r2\n", "- [r1, r3]\n"), network("- r1-r2\n", "- {interfaces: [r1, {node: r3}]}\n"),
        network("#links", "- {group: g, members: [r1-r3]}", "- {group: g, members: [r1-h1]}"),
        network("links:\n- r1-r2", "links:\n- [h1, r2]"), network("- r1-r2\n", "- {r1: {}, r2: {}, disable: true}\n"),
        network(TOPOLOGY[TOPOLOGY.index("links:"):], "links:\n  core: r1-r2\n  edge: [r3-h1-h2, r2-r3, r1-sw]\n", "links:\n  core: r1-r3\n  edge: [r3-h1-h2, r2-r3, r1-sw]\n"),
    ],
    "`prefix` of IPv4, IPv6 or both": [
        network("prefix: 10.3.0.0/24", "prefix: 10.3.0.0/25"), network("prefix: 10.3.0.0/24", "prefix: {ipv6: '2001:db8:3::/64'}", "prefix: {ipv6: '2001:db8:4::/64'}"),
        network("prefix: 10.3.0.0/24", "prefix: {ipv4: 10.3.0.0/24, ipv6: '2001:db8::/64'}", "prefix: {ipv4: 10.3.0.0/24}"),
        network("prefix: 10.4.0.0/24", "prefix: {ipv4: 10.4.0.0/24, allocation: sequential}"),
        interface("ipv4: 10.3.0.7", "ipv4: 10.3.0.8"), interface("ipv4: 10.3.0.7/24", "ipv4: 10.3.0.8/24"), interface("ipv4: 7", "ipv4: 8"),
        network(LINK, "{r2: {ipv6: '2001:db8::5/64'}, r3: {}, prefix: {ipv4: 10.3.0.0/24, ipv6: '2001:db8::/64'}}", "{r2: {ipv6: '2001:db8::6/64'}, r3: {}, prefix: {ipv4: 10.3.0.0/24, ipv6: '2001:db8::/64'}}"),
        network("h1: {device: linux, id: 9}", "h1: {device: linux, id: 8}"),
    ],
    "`addressing` with IPv6": [
        network("#file", "addressing: {p2p: {ipv4: 10.9.0.0/16, ipv6: '2001:db8:9::/48'}, lan: {ipv6: '2001:db8:7::/48'}}", "addressing: {p2p: {ipv4: 10.9.0.0/16, ipv6: '2001:db8:8::/48'}}"),
        network("#file", "addressing: {p2p: {ipv6: '2001:db8:9::/48'}}", "addressing: {p2p: {ipv6: '2001:db8:8::/48'}}"),
        said("#file", "addressing: {lan: {ipv4: 10.9.0.0/16}}"), said("#file", "addressing: {mgmt: {ipv4: 10.9.0.0/16}}"),
    ],
    "`prefix` as `false` or `true`": [
        both("prefix: 10.3.0.0/24", "prefix: false"), both("prefix: 10.3.0.0/24", "prefix: {ipv4: true}"), both("prefix: 10.3.0.0/24", "prefix: true"),
        both("prefix: 10.3.0.0/24", "prefix: {allocation: id_based}"), said("#file", "prefix: {x: {ipv4: 10.5.0.0/16}}"),
        said(*of_interface("ipv4: true")), said(*of_interface("ipv4: false")),
    ],
    "`mtu` of an interface, link, node": [
        key("mtu: 1400", "mtu: 1300"), network("#file", "defaults.interfaces.mtu: 1400", "defaults.interfaces.mtu: 1300"), key("ospf.cost: 5", "ospf.cost: 6"),
        both(*of_interface("mtu: 1300")), network("r3: {id: 3}", "r3: {id: 3, mtu: 1400}", "r3: {id: 3, mtu: 1300}"),
    ],
    "`tc` of a link or an interface": [
        *(key(f"tc: {{delay: 9, {word}: 1}}", f"tc: {{delay: 9, {word}: 2}}") for word in ("jitter", "loss", "corrupt", "duplicate", "reorder", "rate")),
        key("tc.delay: 5", "tc.delay: 6ms"), interface("tc.delay: 5", "tc.delay: 6"), network(LAN, LAN.replace("h1: {}", "h1: {tc.delay: 5}")),
        said(*link("tc: {colour: 5}")),
    ],
    "`shutdown` of a link": [key("shutdown: false", "shutdown: true"), network(*of_interface("shutdown: true")), network(LAN, LAN.replace("h1: {}", "h1: {shutdown: true}"))],
    "`role: router`": [network("device: linux", "device: linux, role: router"), network("device: linux", "device: linux, role: gateway")],
    "`validate`: `plugin: ping('NODE')`": [
        network("#links\n", test("nodes: [r1], plugin: \"ping('h1')\""), test("nodes: [r2], plugin: \"ping('h1')\"")),
        network("#links\n", test("nodes: [r1], plugin: \"ping('h1', expect='fail')\""), test("nodes: [r1], plugin: \"ping('h1')\"")),
        network("#links\n", test("nodes: [r1], exec: ping h1, valid: \"'64 bytes' in stdout\""), test("nodes: [r1], exec: ping h1, valid: \"'64 bytes' not in stdout\"")),
    ],
    "other tests; pings after": [
        said("#links\n", test("nodes: [r1], show: ip route, valid: x")), said("#links\n", test("nodes: [r1], config: x")), said("#links\n", test("nodes: [r1], exec: uptime")),
    ],
    "settings of protocols": [
        said(*node("bgp.rr: true")), said(*node("loopback.ipv4: 10.9.9.9/32")), said("#file", "addressing: {lan: {ipv4: 10.0.0.0/16}}"), said("#groups", "more: {members: [r1], vars: {a: 1}}"),
        said("#groups", "more: {members: [r1], config: [x]}"), said(*node("config: [x]")), said("#file", "ospf.area: 0.0.0.1"), said(*link("bandwidth: 5")), said(*link("role: external")),
        said(*link("gateway: true")), said(*link("ospf.area: 0.0.0.1")), said(*of_interface("ospf.cost: 7")), said(*node("box: x")), said("#file", "defaults.provider: clab"),
        said("#file", "plugin: [bgp.session]"), said("#file", "tools: {suzieq: }"), said(*link("ospf: false")), said("", "device: eos\n", file="topology-defaults.yml"), said("device: linux", "device: linux, module: [routing]"), said(*of_interface("ifname: eth9")),
    ],
    "routers without a module": [both("module: [ospf, bgp]", "module: []"), network("module: [ospf, bgp]", "module: [ospf]", "module: []")],
    "`name` of the file": [network("name: lab", "name: lad")],
    "`message`, `provider`, `version`": [
        silent("message: hello", "message: bye"), silent("#file", "provider: clab"), silent("#file", 'version: ">1"'), silent(*link("name: core")), silent(*link("linkindex: 9")),
    ],
    "links of type `loopback`": [
        *(refused("#groups", f"g: {{type: {word}, members: [red]}}") for word in ("vlan", "vrf")), *(refused(*link(f"type: {word}")) for word in ("loopback", "tunnel", "lag")), refused("[ospf, bgp]", "[isis]"), refused("#file", "vlans: {red: }"), refused("#file", "vrfs: {red: }"),
        refused("#file", "plugin: [fabric]"), refused("#file", "_include: [x]"), refused("#file", "components: {x: {}}"), refused(*link("type: vlan_member")), refused("#groups", "g: {members: [g]}"), refused(*link("vlan.access: red")), refused("device: linux", "device: eos"), refused("- r1-r2", "- r1-r9"),
    ],
}  # fmt: skip
TOOL = Tool("netlab's topologies", {"x.yml": TOPOLOGY}, "x.yml", imported(netlab.read), ROWS)
