"""Tests that every construct which is changed in a file changes the import's result or its messages; nothing
is lost silently.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.exchange import (
    compose,
    containerlab,
    core,
    gns3,
    kathara,
    mahimahi,
    mininet,
    netlab,
    to_containerlab,
    writing,
)
from orchestrator.exchange.network import Network
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError, load
from orchestrator.topology.graphml import topology_text
from orchestrator.topology.loading import parse, read_bytes

Read = Callable[[Path], Network]
MININET = """\
from mininet.net import Mininet
from mininet.link import TCLink
from mininet.node import CPULimitedHost
net = Mininet(link=TCLink, host=CPULimitedHost)
h = [net.addHost('h%d' % n, cpu=0.25) for n in (1, 2, 3, 4)]
s = net.addSwitch('s1')
one = net.addLink(h[0], h[1], bw=10, delay='10ms')
two = net.addLink(h[1], h[2], bw=10)
three = net.addLink(h[2], s)
four = net.addLink(h[3], s, loss=1)
net.start()
one.intf1.config(bw=1, delay='100ms')
net.delLink(two)
net.configLinkStatus('h1', 'h2', 'down')
h[3].intf('h4-eth0').setIP('10.7.0.9/24')
h[2].cmd('ifconfig h3-eth1 10.7.0.8/24')
s.cmd('tc qdisc add dev s1-eth2 root netem delay 7ms')
h[3].setHostRoute('10.9.0.1', 'h4-eth0')
"""
CONTAINERLAB = """\
name: lab
topology:
  defaults: {kind: linux}
  nodes:
    a: {cpu: 1.5, memory: 64m,
        exec: ["ip addr add 10.1.0.1/24 dev eth1", "tc qdisc add dev eth1 root netem delay 5ms"]}
    b: {sysctls: {net.ipv4.ip_forward: 1},
        exec: ["ip link set eth1 mtu 1300", "ip addr add 10.1.0.2/24 dev eth1"]}
    c: {exec: ["sh -c 'ip addr add 10.2.0.7/24 dev eth1; ip route add default via 10.2.0.1'"]}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
    - endpoints: [{node: b, interface: eth2, ipv4: 10.2.0.1/24}, "c:eth1"]
      mtu: 1400
"""
NETLAB = """\
defaults.device: frr
module: [ospf, bgp]
groups:
  all_of: {members: [inner, r3, h*], bgp.as: 65000}
  inner: {members: [r1, r2], bgp.as: 65001}
nodes: {r1: {bgp.rr: true}, r2: , r3: , h1: {device: linux}}
links:
- {group: g, ospf.cost: 7, members: [r1-r2]}
- r2-r3
- {r2: {ipv4: 10.3.0.9/24}, h1: , prefix: 10.3.0.0/24, tc: {delay: 5, loss: 2}, mtu: 1400}
validate: {ping: {nodes: [h1], exec: ping r1}}
"""
COMPOSE = """\
services:
  web: {image: "w:1", cpus: 0.5, mem_limit: 64m, ports: ["80:8080"], depends_on: [db], networks: [front, back]}
  db: {networks: {back: {ipv4_address: 172.20.0.9}}, pids_limit: 64, deploy: {replicas: 1}}
networks:
  front: {driver: bridge}
  back: {ipam: {config: [{subnet: 172.20.0.0/24}]}}
"""
MAHIMAHI = "mm-delay 20 mm-loss uplink 0.1 mm-link --uplink-queue-args=packets=100 up down -- curl x\n"
# For each construct: what stands in the file, and another value.
# ruff: noqa: E501
CHANGES: dict[str, tuple[str, Read, list[tuple[str, str]]]] = {
    "x.py": (MININET, mininet.read, [
        ("cpu=0.25", "cpu=0.5"), ("bw=10, delay='10ms'", "bw=20, delay='10ms'"), ("delay='10ms'", "delay='11ms'"),
        ("bw=1,", "bw=2,"), ("'100ms'", "'101ms'"), ("net.delLink(two)", "pass"), ("'down'", "'up'"),
        ("10.7.0.9", "10.7.0.5"), ("10.7.0.8", "10.7.0.4"), ("7ms", "8ms"), ("loss=1", "loss=2"),
        ("10.9.0.1", "10.9.0.2"), ("h[2], s)", "h[0], s)"),
    ]),
    "x.clab.yml": (CONTAINERLAB, containerlab.read, [
        ("cpu: 1.5", "cpu: 2.5"), ("64m", "65m"), ("10.1.0.1/24", "10.1.0.1/25"), ("5ms", "6ms"),
        ("ip_forward: 1", "ip_forward: 0"), ("mtu 1300", "mtu 1301"), ("10.2.0.7", "10.2.0.8"),
        ("via 10.2.0.1", "via 10.2.0.3"), ("mtu: 1400", "mtu: 1401"), ("ipv4: 10.2.0.1", "ipv4: 10.2.0.4"),
        ("kind: linux", "kind: bridge"), ("name: lab", "name: lad"),
    ]),
    "x.yml": (NETLAB, netlab.read, [
        ("as: 65000", "as: 65009"), ("as: 65001", "as: 65002"), ("bgp.rr: true", "bgp.x: true"), ("cost: 7", "cost: 8"),
        ("10.3.0.9", "10.3.0.8"), ("delay: 5", "delay: 6"), ("loss: 2", "loss: 3"), ("mtu: 1400", "mtu: 1401"),
        ("exec: ping r1", "exec: ping r2"), ("[r1-r2]", "[r1-h1]"), ("device: linux", "device: frr"),
        ("[ospf, bgp]", "[bgp]"),
    ]),
    "compose.yaml": (COMPOSE, compose.read, [
        ("w:1", "w:2"), ("cpus: 0.5", "cpus: 0.25"), ("64m", "32m"), ("80:8080", "81:8080"), ("[db]", "[]"),
        ("[front, back]", "[back]"), ("172.20.0.9", "172.20.0.8"), ("pids_limit: 64", "pids_limit: 65"),
        ("replicas: 1", "replicas: 2"), ("driver: bridge", "driver: macvlan"), ("172.20.0.0/24", "172.20.0.0/25"),
    ]),
    "x.sh": (MAHIMAHI, mahimahi.read, [
        ("mm-delay 20", "mm-delay 21"), ("uplink 0.1", "downlink 0.1"), ("0.1", "0.2"), ("packets=100", "packets=99"),
        ("up down", "down up"), ("curl x", "curl y"),
    ]),
}  # fmt: skip


def told(file: Path, text: str, read: Read) -> str:
    """Returns everything that the user gets: the topology and the lists of messages, or the error."""
    file.write_text(text)
    for name in ("up", "down"):
        (file.parent / name).write_text("1\n2\n" if name == "up" else "1\n3\n")
    try:
        network = read(file)
        written = writing.write(network, str(file.parent / "out.yaml"))
    except TopologyError as error:
        return str(error)
    return "\n".join([written.text, *network.left, *written.changed, *map(str, written.problems)])


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_file_changes_what_is_told(name: str, tmp_path: Path) -> None:
    text, read, changes = CHANGES[name]
    before = told(tmp_path / name, text, read)
    assert "out.yaml" not in before and "is not" not in before.partition("run:")[0], before
    for old, new in changes:
        assert old in text, old
        assert told(tmp_path / name, text.replace(old, new), read) != before, (old, new)


@pytest.mark.parametrize("name", ["ring", "dumbbell"])
def test_import_export_import_keeps_the_network(name: str, tmp_path: Path) -> None:
    topologies = Path(__file__).parents[2] / "topologies"
    file, again = tmp_path / "a.clab.yml", tmp_path / "b.clab.yml"
    file.write_text(to_containerlab.export(make_plan(load(topologies / f"{name}.yaml"))).text)
    first = writing.write(containerlab.read(file)).text
    again.write_text(to_containerlab.export(make_plan(parse("first.yaml", first.encode()))).text)
    second = writing.write(containerlab.read(again)).text
    assert first.splitlines()[3:] == second.splitlines()[3:]


def test_bridges_inside_nodes_are_one_network(tmp_path: Path) -> None:
    text = CONTAINERLAB.partition("  nodes:")[0] + (
        "  nodes:\n    sw: {exec: [ip link add br0 type bridge, ip link set eth1 master br0, brctl addif br0 eth2]}\n"
        "    h1: {exec: [ip addr add 10.4.0.11/24 dev eth1]}\n    h2: {exec: [ifconfig eth1 10.4.0.22/24]}\n"
        '  links: [{endpoints: ["sw:eth1", "h1:eth1"]}, {endpoints: ["sw:eth2", "h2:eth1"]}]\n'
    )
    (tmp_path / "x.clab.yml").write_text(text)
    written = writing.write(containerlab.read(tmp_path / "x.clab.yml"))
    plan = make_plan(parse("x.yaml", written.text.encode()))
    assert {node.name: node.interfaces[0].address for node in plan.nodes} == {
        "h1": "10.4.0.11",
        "h2": "10.4.0.22",
    }
    assert [segment.name for segment in plan.segments] == ["sw"] and not plan.links


def test_a_loop_is_refused_at_the_line_of_the_script_and_the_draft_is_written(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(
        "from mininet.net import Mininet\nnet = Mininet()\ns = [net.addSwitch('s%d' % i) for i in (1, 2, 3)]\n"
        "for one in s:\n    net.addLink(net.addHost('h' + one.name), one)\n"
        "net.addLink(s[0], s[1])\nnet.addLink(s[1], s[2])\nnet.addLink(s[2], s[0])\nnet.start()\n"
    )
    written = writing.write(mininet.read(script), "loop.yaml")
    (problem,) = written.problems
    assert problem.file == str(script) and problem.line == 8 and "loop.yaml:" in problem.remedy
    assert "l3:" in written.text


HOSTILE = """\
import json, os, socket, sys
from mininet.net import Mininet
found = []
def attempt(name, call):
    try:
        call()
        found.append(name)
    except BaseException:
        pass
attempt("write", lambda: open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gone"), "w"))
attempt("home", lambda: os.listdir("/root"))
attempt("secret", lambda: open(SECRET).read())
attempt("fork", os.fork)
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
def call(number, *words):
    import ctypes
    if ctypes.CDLL(None).syscall(number, *words) != 0:
        raise OSError
if os.uname().machine == "x86_64":
    attempt("unshare", lambda: call(272, 0x10000000))
    attempt("keyring", lambda: call(250, 0, -4, 0))
attempt("network", lambda: socket.create_connection(("127.0.0.1", PORT), 1))
net = Mininet()
for name in ["h1", "h2", *found]:
    net.addHost(name)
net.addLink("h1", "h2")
"""


def test_a_hostile_script_reaches_nothing(tmp_path: Path) -> None:
    import socket

    secret = tmp_path / "secret"
    secret.write_text("x")
    (tmp_path / "lab").mkdir()
    script = tmp_path / "lab" / "x.py"
    with socket.create_server(("127.0.0.1", 0)) as server:
        script.write_text(
            HOSTILE.replace("SECRET", repr(str(secret))).replace("PORT", str(server.getsockname()[1]))
        )
        network = mininet.read(script)
    assert sorted(network.machines) == ["h1", "h2"] and not (tmp_path / "lab" / "gone").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("net.moveHost('h1', 's2')", "line 5: net.moveHost('h1', 's2') is not done"),
        ("net['h1'].setARP('10.0.0.2', '00:00:00:00:00:02')", "line 5: h1.setARP("),
        ("net['h1'].frobnicate()", "line 5: h1.frobnicate() is not done"),
        ("net.hosts = []", "line 5: net.hosts = [] is not taken over"),
        ("net['h1'].setMAC('00:00:00:00:00:01')", "line 5: h1: the MAC"),
        ("net.addNAT().configDefault()", "line 5: NAT nat0"),
        ("net.pingAll()", "line 5: net.pingAll() is not done"),
        ("from mininet.link import Intf; Intf('eth1', node=net['h1'])", "line 5: Intf('eth1')"),
    ],
)
def test_unknown_calls_and_attributes_are_named_with_their_line(line: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "x.py"
    script.write_text(
        "from mininet.net import Mininet\nnet = Mininet()\nh1, h2 = net.addHost('h1'), net.addHost('h2')\n"
        f"net.addLink(h1, h2)\n{line}\nnet.start()\n"
    )
    assert any(one.startswith(said) for one in mininet.read(script).left)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print 'old'\n", r"x.py:1: is Python 2"),
        ("for i in xrange(3): pass\n", r"x.py:1: is Python 2"),
        (
            "import sys\nfrom mininet.net import Mininet\nn = float(sys.argv[1])\n",
            r"x.py:3: fails \(IndexError",
        ),
        ("import sys\nsys.exit('needs root')\n", r"x.py:2: fails \(ended with sys.exit"),
    ],
)
def test_scripts_that_fail_are_refused_with_their_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(text)
    with pytest.raises(TopologyError, match=said):
        mininet.read(tmp_path / "x.py")


def test_arguments_go_through(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import sys\nfrom mininet.net import Mininet\nnet = Mininet()\ns = net.addSwitch('s1')\n"
        "for i in range(int(sys.argv[1])): net.addLink(net.addHost('h%d' % i), s)\n"
    )
    assert len(mininet.read(tmp_path / "x.py", ("4",)).machines) == 4


def test_an_address_stays_with_its_interface_when_the_link_goes(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "from mininet.net import Mininet\nnet = Mininet()\nh1, h2 = net.addHost('h1'), net.addHost('h2')\n"
        "one = net.addLink(h1, h2)\nnet.start()\nnet.delLink(one)\nnet.addLink(h1, h2, intfName1='x')\n"
    )
    network = mininet.read(tmp_path / "x.py")
    assert network.machines["h1"].addresses == {"h1-eth0": ["10.0.0.1/8"]}
    assert network.wires[0].ends == (("h1", "x"), ("h2", "h2-eth0"))


READERS: dict[str, Read] = {
    "containerlab": containerlab.read, "kathara": kathara.read, "mininet": mininet.read, "netlab": netlab.read,
    "compose": compose.read, "mahimahi": mahimahi.read, "gns3": gns3.read, "core": core.read,
    "graphml": lambda file: topology_text("x", read_bytes(file), "x"),  # type: ignore[dict-item, return-value]
}  # fmt: skip


@pytest.mark.parametrize("tool", READERS)
@pytest.mark.parametrize("kind", ["large", "latin", "utf16", "nul", "empty", "fifo", "directory", "absent"])
def test_bad_files_are_refused(tool: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    if kind == "large":
        with file.open("wb") as stream:
            stream.truncate(50 << 20)
    elif kind in ("latin", "utf16"):
        file.write_bytes("nodes: [\xe4]\n".encode("latin-1" if kind == "latin" else "utf-16"))
    elif kind in ("nul", "empty"):
        file.write_bytes(b"name: a\0b\n" if kind == "nul" else b"")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    with pytest.raises(TopologyError):
        READERS[tool](file)


@pytest.mark.parametrize(
    "script",
    [
        "import os\nos._exit(0)\n",
        "import os\nos.write(1, b'{}')\nos._exit(0)\n",
        "import os\nos.write(1, b'[1]')\nos._exit(0)\n",
        'import os\nos.write(1, b\'{"nets": [{"hosts": [1], "switches": [], "links": []}], "left": [], "changed": [], "error": null}\')\nos._exit(0)\n',
    ],
)
def test_an_answer_that_a_script_forges_is_refused(script: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(script)
    with pytest.raises(TopologyError, match="ended with status 0"):
        mininet.read(tmp_path / "x.py")


def test_a_module_beside_the_script_is_not_the_recorders(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(1)\n")
    (tmp_path / "mine.py").write_text("NAME = 'x'\n")
    (tmp_path / "x.py").write_text(
        "import mine\nfrom mininet.net import Mininet\nnet = Mininet()\n"
        "net.addLink(net.addHost(mine.NAME), net.addHost('y'))\n"
    )
    assert set(mininet.read(tmp_path / "x.py").machines) == {"x", "y"}


def test_cycles_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text("nodes: [a]\ngroups: {g: {members: [h]}, h: {members: [g]}}\nlinks: [a]\n")
    with pytest.raises(
        TopologyError, match=r"x.yml:2: groups.g: the group g is a member of itself \(g -> h -> g\)"
    ):
        netlab.read(file)
    file.write_text("services: {a: {depends_on: [b]}, b: {depends_on: [a]}}\n")
    with pytest.raises(TopologyError, match="a depends on itself"):
        compose.read(file)


@pytest.mark.parametrize(
    ("last", "down", "said"),
    [
        ("ip link set br0 up", 0, "a segment here"),
        ("ip link set br0 down", 2, "br0 is off: the links of its ports are down here"),
        ("ifconfig br0 down", 2, "br0 is off"),
        ("true", 0, "br0 is never set up in the file"),
        ("ip link set br0 mtu 900 up", 0, "the MTU 900 of br0"),
    ],
)
def test_a_bridge_that_is_off_carries_nothing(last: str, down: int, said: str, tmp_path: Path) -> None:
    text = CONTAINERLAB.partition("  nodes:")[0] + (
        f"  nodes:\n    sw: {{exec: [ip link add br0 type bridge, brctl addif br0 eth1 eth2, {last}]}}\n"
        "    h1: {exec: [ip addr add 10.4.0.11/24 dev eth1]}\n    h2: {exec: [ifconfig eth1 10.4.0.22/24]}\n"
        '  links: [{endpoints: ["sw:eth1", "h1:eth1"]}, {endpoints: ["sw:eth2", "h2:eth1"]}]\n'
    )
    (tmp_path / "x.clab.yml").write_text(text)
    network = containerlab.read(tmp_path / "x.clab.yml")
    written = writing.write(network)
    assert written.text.count("link-down") == down
    assert any(said in one for one in (*network.left, *written.changed))
