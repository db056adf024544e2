"""Holds the cases of the section on containerlab's topologies."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import containerlab

from . import Tool, both, imported, network, refused, said

TOPOLOGY = """\
name: lab
topology:
  defaults: {kind: linux}
  kinds: {linux: {labels: {}}}
  groups: {plain: {labels: {}}}
  nodes:
    a:
      exec: ["ip addr add 10.1.0.1/24 dev eth1", "ip addr add 10.4.0.1/24 dev eth2"]
      cpu: 1.5
    b:
      kind: linux
      exec: ["ip addr add 10.1.0.2/24 dev eth1", "ip addr add 10.2.0.1/24 dev eth2"]
      sysctls: {net.ipv4.ip_forward: 1}
      memory: 64m
      env: {MINE: 10.2.0.9/24}
      # b
    c:
      exec: ["ip addr add 10.2.0.7/24 dev eth1"]
      # c
    r:
      kind: linux
      image: quay.io/frrouting/frr:9.1
      binds: ["r.conf:/etc/frr/frr.conf"]
    d: {exec: ["ip link set eth1 up"]}
    sw: {kind: bridge}
    # nodes
  links:
    - endpoints: ["a:eth1", "b:eth1"]
    - endpoints: ["b:eth2", "c:eth1"]
      mtu: 1400
      # link
    - endpoints: ["a:eth2", "sw:p1"]
    - endpoints: ["r:eth2", "sw:p2"]
    - endpoints: ["r:eth1", "d:eth1"]
    # links
"""
ROUTER = "interface eth1\n ip address 10.3.0.1/24\n!\nrouter ospf\n network 10.3.0.0/24 area 0\n"
ROUTER = ROUTER.replace("!", "interface eth2\n ip address 10.4.0.2/24\n!")
FILES = {"x.clab.yml": TOPOLOGY, "r.conf": ROUTER, "s.conf": ROUTER.replace("area 0", "area 1"),
         "up.sh": "ip addr add 10.3.0.6/24 dev eth1\n"}  # fmt: skip
EXEC = 'exec: ["ip link set eth1 up"'
ADD = "ip addr add 10.3.0.7/24 dev eth1"


def key(text: str, node: str = "b") -> tuple[str, str]:
    """Returns a change that adds a key to a node."""
    return f"      # {node}\n", f"      {text}\n"


def link(text: str) -> tuple[str, str]:
    return "      # link\n", f"      {text}\n"


ROWS = {
    "node of kind `linux`": [
        network("kind: linux\n      exec", "kind: bridge\n      exec")],
    "node of kind `frr`": [
        network("kind: linux\n      image: quay.io/frrouting/frr:9.1", "kind: linux"),
        network("kind: linux\n      image: quay.io/frrouting/frr:9.1\n      binds", "kind: linux\n      binds"),
        network('r.conf:/etc/frr/frr.conf', 's.conf:/etc/frr/frr.conf'),
        network('binds: ["r.conf:/etc/frr/frr.conf"]', "startup-config: r.conf", "startup-config: s.conf"),
        network("area 0", "area 2", file="r.conf"),
        both("kind: linux\n      image: quay.io/frrouting/frr:9.1", "kind: frr", "kind: linux"),
    ],
    "node of kind `bridge`": [
        network('- endpoints: ["r:eth2", "sw:p2"]', '- endpoints: ["b:eth3", "sw:p2"]'),
        network("sw: {kind: bridge}\n    # nodes\n", "sw: {kind: bridge}\n    o: {kind: ovs-bridge}\n"),
    ],
    "other kinds": [refused("sw: {kind: bridge}", "sw: {kind: nokia_srlinux}")],
    "a bridge within a node": [
        network("sw: {kind: bridge}\n    # nodes\n  links:\n",
                'sw: {kind: bridge}\n    br0|c: {kind: bridge}\n  links:\n    - endpoints: ["b:eth7", "br0|c:p1"]\n')],
    "link of type `veth`": [
        network('"c:eth1"]', '"a:eth9"]'), network("mtu: 1400", "mtu: 1300"), network(*link("type: veth"), link("type: macvlan")[1]),
        network(*link("type: veth-stitch"), link("type: dummy")[1]),
        network('endpoints: ["b:eth2", "c:eth1"]', "endpoints: [{node: b, interface: eth2}, {node: a, interface: eth4}]",
                "endpoints: [{node: b, interface: eth2}, {node: c, interface: eth1}]"),
        network('"r:eth2", "sw:p2"', '"b:eth4", "sw:p2"'),
    ],
    "links and ends of type `host`": [
        *(said("    # links\n", f"    - {{type: {kind}, endpoint: {{node: c, interface: eth7}}}}\n")
          for kind in ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")),
        *(said("    # links\n", f'    - endpoints: ["c:eth7", "{word}:x7"]\n') for word in ("host", "mgmt-net", "macvlan")),
    ],
    "two links at one interface": [
        refused("    # links\n", '    - endpoints: ["c:eth1", "a:eth8"]\n'), refused(*link("type: tube"))],
    "`exec`, alone": [
        network("10.2.0.7", "10.2.0.8"), network(EXEC, f"{EXEC}, \"{ADD}\""),
        network("10.2.0.7/24 dev eth1\"", "10.2.0.7/24 dev eth1\", \"sh -c 'ip route add default via 10.2.0.1'\""),
        network(
            'd: {exec: ["ip link set eth1 up"]}',
            "d: {env: {W: 10.3.0.7/24}, exec: [\"sh -c 'ip addr add $$W dev eth1'\"]}",
            "d: {env: {W: 10.3.0.8/24}, exec: [\"sh -c 'ip addr add $$W dev eth1'\"]}",
        ),
        network("d: {" + EXEC, 'd: {binds: ["up.sh:/up.sh"], exec: ["bash /up.sh"'),
        network('"ip addr add 10.2.0.1/24 dev eth2"', "\"sh -c 'ip addr add $MINE dev eth2'\""),
        network('"ip addr add 10.2.0.1/24 dev eth2"', "\"sh -c 'ip addr add $$MINE dev eth2'\""),
        network(*key("stages: {create-links: {exec: [{command: ip link set eth2 mtu 1300}]}}"),
                key("stages: {create-links: {exec: [{command: ip link set eth2 mtu 1200}]}}")[1]),
        said('"ip addr add 10.1.0.1/24 dev eth1"', '"ip addr add 10.1.0.1/24 dev eth1 && touch /x"'),
    ],
    "`stages` otherwise": [
        said(*key("stages: {configure: {exec: {on-exit: [touch /x]}}}")), said(*key("stages: {configure: {exec: [touch]}}")), said(*key("stages: [x]")),
        said(*key("stages: {create: {wait-for: [{node: a, stage: create}]}}")),
        said(*key("stages: {create: {exec: [{command: touch /x, target: host}]}}")),
        said(*key("stages: {exit: {exec: [{command: ip link set eth1 down}]}}")),
    ],
    "`cpu`, `memory`": [
        network("cpu: 1.5", "cpu: 2.5"), network("memory: 64m", "memory: 65m"), network("memory: 64m", "memory: 64Mib", "memory: 1Gb"),
        network("sysctls: {net.ipv4.ip_forward: 1}", "sysctls: {net.ipv4.ip_forward: 0}"),
        said("net.ipv4.ip_forward: 1}", "net.ipv4.ip_forward: 1, net.core.somaxconn: 9}"),
    ],
    "`ipv4`, `ipv6` of an endpoint": [
        both('["r:eth1", "d:eth1"]', '["r:eth1", {node: d, interface: eth1, ipv4: 10.3.0.7/24}]'),
        network('["r:eth1", "d:eth1"]', '["r:eth1", "d:eth1"]\n      ipv4: ["", 10.3.0.7/24]', '["r:eth1", "d:eth1"]\n      ipv4: ["", 10.3.0.8/24]'),
        said('["r:eth1", "d:eth1"]', '["r:eth1", "d:eth1"]\n      ipv6: ["", "2001:db8::1/64"]',
             '["r:eth1", {node: d, interface: eth1, ipv6: "2001:db8::2/64"}]'),
    ],
    "`${NAME:=default}`": [
        both("cpu: 1.5", "cpu: ${CPU:=2.5}"), said("cpu: 1.5", "cpu: 1.5${CPU:+3}"),
        network("name: lab", "name: lab$$x", "name: lab$$y"), network("name: lab", "name: lab${X}", "name: lab${Y}"),
    ],
    "`__clabNodeName__`": [
        network(EXEC, "exec: [\"sh -c 'test __clabNodeName__ = d && " + ADD + "'\", \"ip link set eth1 up\"",
                "exec: [\"sh -c 'test __clabNodeName__ = b && " + ADD + "'\", \"ip link set eth1 up\""),
        *(network(EXEC, f"exec: [\"sh -c 'test {word} = {value} && {ADD}'\", \"ip link set eth1 up\"",
                  f"exec: [\"sh -c 'test {word} = no && {ADD}'\", \"ip link set eth1 up\"")
          for word, value in (("__clabLabName__", "clab-lab"), ("__clabNodeDir__", "clab-lab/d"), ("__clabDir__", "clab-lab"))),
        said(*key("stages: {configure: {exec: [{command: touch __clabNodeName__}]}}"),
             key("stages: {configure: {exec: [{command: touch a}]}}")[1]),
        said('"r.conf:/etc/frr/frr.conf"', '"r.conf:/etc/frr/frr.conf", "__clabNodeName__:/x"', '"r.conf:/etc/frr/frr.conf", "q:/x"'),
        refused('binds: ["r.conf:/etc/frr/frr.conf"]', "startup-config: __clabNodeName__.txt"),
    ],
    "`network-mode` of another": [
        refused(*key('network-mode: "container:a"')), refused(*key("network-mode: host")),
        refused("name: lab", "name: {{ .Name }}"), refused("name: lab", "name: lab{{ if }}"),
    ],
    "`startup-config` and `binds` of a node": [
        said(*key("startup-config: r.conf")), said(*key('binds: ["up.sh:/up.sh"]')), said(*key('binds: ["nosuch.sh:/up.sh"]')),
        said(*key('binds: ["nosuch.sh:/up.sh"]'), key('binds: ["up.sh:/up.sh"]')[1]), said(*key("group: nosuch")),
    ],
    "items of `exec` and `binds`": [
        refused('"ip addr add 10.1.0.1/24 dev eth1"', '"ip addr add 10.1.0.1/24 dev eth1", {tc qdisc: netem}'),
        refused('d: {exec: ["ip link set eth1 up"]}', 'd: {exec: [{ip link: up}]}'),
        refused(*key("binds: [{a: b}]")),
    ],
    "other commands, `image`": [
        said('"ip addr add 10.1.0.1/24 dev eth1"', '"ip addr add 10.1.0.1/24 dev eth1", "ethtool -s eth1 speed 10"'),
        *(said(*key(text)) for text in (
            "image: alpine", 'ports: ["80:80"]', "entrypoint: /x", "cmd: sleep", 'volumes: ["v:/v"]', "env-files: [x.env]",
            "healthcheck: {test: [CMD, true]}", "cpu-set: 0-1", "startup-delay: 5", "runtime: podman", "user: root",
            "mgmt-ipv4: 172.20.20.9", "dns: {servers: [1.1.1.1]}", "certificate: {issue: true}", "cap-add: [NET_ADMIN]")),
        said("name: lab\n", "name: lab\nmgmt: {network: x}\n"), said("name: lab\n", "name: lab\nprefix: x\n"),
        said("name: lab\n", "name: lab\nsettings: {certificate-authority: {}}\n"),
        said(*link("vars: {a: 1}")), said(*link("labels: {a: b}")),
        said('["r:eth1", "d:eth1"]', '["r:eth1", {node: d, interface: eth1, mac: "02:00:00:00:00:01"}]'),
        said('"ip addr add 10.1.0.1/24 dev eth1"', '"ip addr add 10.1.0.1/24 dev eth1", "touch /x"'),
    ],
    "`defaults`, `kinds`": [
        network("defaults: {kind: linux}", "defaults: {kind: linux, memory: 9m}"), network("linux: {labels: {}}", "linux: {cpu: 3}"),
        network("linux: {labels: {}}}\n  groups: {plain: {labels: {}}}", "linux: {group: plain}}\n  groups: {plain: {memory: 9m}}"),
        network("groups: {plain: {labels: {}}}\n  nodes:\n    a:\n", "groups: {plain: {memory: 9m}}\n  nodes:\n    a:\n      group: plain\n"),
        network("defaults: {kind: linux}\n  kinds: {linux: {labels: {}}}\n  groups: {plain: {labels: {}}}",
                "defaults: {kind: linux, group: plain}\n  kinds: {linux: {labels: {}}}\n  groups: {plain: {memory: 9m}}"),
    ],
}  # fmt: skip
TOOL = Tool("containerlab's topologies", FILES, "x.clab.yml", imported(containerlab.read), ROWS)
