"""Tests files of other tools that once became a different network without a message: with routes, addresses
and nodes that the tool does not give.
"""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.exchange import compose, containerlab, core, gns3, kathara, mininet, netlab, writing
from orchestrator.exchange.network import Machine, Network
from orchestrator.exchange.startup import Startup
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


def read(tmp_path: Path, name: str, text: str, reader: Callable[[Path], Network]) -> Network:
    (tmp_path / name).write_text(text)
    return reader(tmp_path / name)


def after(script: str) -> Machine:
    machine = Machine("a")
    Startup(machine, "a", lambda line: f"line {line}").script(script)
    return machine


@pytest.mark.parametrize(
    ("word", "address"),
    [("10.$i$j.0.1/24", "10.12.0.1/24"), ("10.0.$i.$j$i/24", "10.0.1.21/24"), ("$i$j.0.0.1/24", "12.0.0.1/24"),
     ("10.${i}$j.$i$j.1/24", "10.12.12.1/24")],
)  # fmt: skip
def test_variables_without_a_sign_between_them(word: str, address: str) -> None:
    for script in (f"ip addr add {word} dev eth0", f"x={word}\nip addr add $x dev eth0"):
        assert after(f"i=1\nj=2\n{script}\n").addresses == {"eth0": [address]}


def test_an_interface_that_was_down_has_lost_its_routes() -> None:
    head = "ip addr add 10.0.0.1/24 dev eth0\nip addr add fc00::1/64 dev eth0\nip addr add 10.1.0.1/24 dev eth1\n"
    routes = "ip route add default via 10.0.0.2\nip route add 10.2.0.0/24 via 10.1.0.2\n"
    made = after(f"{head}{routes}ip link set eth0 down\nip link set eth0 up\n")
    assert [one.to for one in made.routes] == ["10.2.0.0/24"] and made.addresses["eth0"] == ["10.0.0.1/24"]
    assert len(after(f"{head}ip link set eth0 down\nip link set eth0 up\n{routes}").routes) == 2


KATHARA = "a[0]=A\na[1]=B\nb[0]=A\nc[0]=B\n"
OSPF = "interface eth0\n ip address 10.0.0.1/24\nrouter ospf\n network 10.0.0.0/24 area 0\n"


def lab(tmp_path: Path, **files: str) -> Network:
    (tmp_path / "a/etc/frr").mkdir(parents=True)
    (tmp_path / "a.startup").write_text("systemctl start frr\n")
    for name, text in files.items():
        (tmp_path / "a/etc/frr" / name.replace("_", ".")).write_text(text)
    return read(tmp_path, "lab.conf", KATHARA, kathara.read)


@pytest.mark.parametrize(
    ("listed", "said"), [("ospfd=no", 1), ('ospfd="no"', 1), ("ospfd=yes", 0), ("bgpd=no", 0)]
)
def test_a_daemon_that_is_not_started_is_said(listed: str, said: int, tmp_path: Path) -> None:
    made = lab(tmp_path, frr_conf=OSPF, daemons=f"zebra=yes\n{listed}\n")
    assert sum("ospfd is not started there" in one for one in made.left) == said


def test_static_routes_of_a_configuration_without_a_protocol(tmp_path: Path) -> None:
    static = "ip route 10.1.0.0/24 10.0.0.2\nip route 10.5.0.0/24 Null0\n"
    made = lab(tmp_path, staticd_conf=static, zebra_conf="interface eth0\n ip address 10.0.0.1/24\n")
    assert [(one.to, one.via) for one in made.machines["a"].routes] == [("10.1.0.0/24", "10.0.0.2")]
    assert made.machines["a"].addresses == {"eth0": ["10.0.0.1/24"]}
    assert any("`ip route 10.5.0.0/24 Null0` is not done" in one for one in made.left)


def test_static_routes_beside_a_protocol_have_their_daemon(tmp_path: Path) -> None:
    made = lab(tmp_path, frr_conf=f"{OSPF}!\nip route 10.9.0.0/24 10.0.0.2\n")
    plan = make_plan(parse("x.yaml", writing.write(made).text.encode()))
    (process,) = (one.process for node in plan.nodes for one in node.software)
    assert process is not None and process.env["DAEMONS"] == "zebra ospfd staticd"


NETLAB = "defaults.device: frr\nnodes: {r1: , r2: , r3: , h: {device: linux}}\n"


def test_routers_of_netlab_without_a_protocol_have_no_routes(tmp_path: Path) -> None:
    made = read(tmp_path, "x.yml", f"{NETLAB}links: [r1-r2, r2-r3, r3-h]\n", netlab.read)
    plan = make_plan(parse("x.yaml", writing.write(made).text.encode()))
    assert {node.name: len(node.routes) for node in plan.nodes} == {"r1": 0, "r2": 0, "r3": 0, "h": 1}
    assert any("no routing protocol in the file" in one for one in made.changed)
    other = NETLAB.replace("frr", "eos")
    made = netlab.read(
        (tmp_path / "y.yml", (tmp_path / "y.yml").write_text(f"{other}links: [r1-r2, r2-r3]\n"))[0], True
    )
    assert any("routes are the plan's" in one for one in made.changed)


@pytest.mark.parametrize("links", ["links: r1-r2\n", "links: {core: r1-r2}\n"])
def test_a_link_of_netlab_as_one_text(links: str, tmp_path: Path) -> None:
    assert len(read(tmp_path, "x.yml", f"{NETLAB}{links}", netlab.read).wires) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{NETLAB}module: [ospf]\nlinks: [{{r1: , r2: , ospf: false}}]\n", "ospf: false of a link"),
        (f"{NETLAB}bgp.as_list: {{1: {{members: [r1], rr: [r1]}}}}\nlinks: [r1-r2]\n", "bgp.as_list.1.rr"),
        (
            f"{NETLAB}links: [{{r1: , h: }}]\n".replace("linux", "linux, module: [routing]"),
            "h: the module routing",
        ),
    ],
)
def test_settings_of_netlab_that_are_left_out_are_said(text: str, said: str, tmp_path: Path) -> None:
    assert any(said in one for one in read(tmp_path, "x.yml", text, netlab.read).left)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{NETLAB}_include: [x]\nlinks: [r1-r2]\n", 3), (f"{NETLAB}links: [{{r1: 5, r2: }}]\n", 3),
        (f"{NETLAB}links: [{{r1: , r2: , type: vlan_member}}]\n", 3),
        ("defaults.device: frr\ndefaults.groups: {g: [z]}\ngroups: {_auto_create: true, k: [a, b]}\nlinks: [a-b]\n", 3),
    ],
)  # fmt: skip
def test_forms_of_netlab_that_are_refused(text: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(TopologyError) as raised:
        read(tmp_path, "x.yml", text, netlab.read)
    assert line in [problem.line for problem in raised.value.problems]


def scenario(services: str, gateway: str = "10.0.0.1") -> str:
    own = "".join(f'<service name="{one}"/>' for one in services.split())
    return f"""<scenario><devices>
<device id="1" name="pc" type="PC"/><device id="2" name="r" type="x"><services>{own}</services></device>
<device id="3" name="q" type="x"><services>{own}</services></device></devices><links>
<link node1="1" node2="2"><iface1 id="0" ip4="10.0.0.20" ip4_mask="24"/><iface2 id="0" ip4="{gateway}" ip4_mask="24"/></link>
<link node1="2" node2="3"><iface1 id="1" ip4="10.0.1.1" ip4_mask="24"/><iface2 id="0" ip4="10.0.1.2" ip4_mask="24"/></link>
</links></scenario>"""


@pytest.mark.parametrize(
    ("services", "routes"),
    [("zebra IPForward", [1, 0, 0]), ("OSPFv2 IPForward", [1, 0, 0]), ("FRROSPFv2 IPForward", [1, 0, 0]),
     ("RIP IPForward", [1, 0, 1])],
)  # fmt: skip
def test_routes_of_core_are_those_of_its_services(services: str, routes: list[int], tmp_path: Path) -> None:
    made = read(tmp_path, "x.xml", scenario(services), core.read)
    plan = make_plan(parse("x.yaml", writing.write(made).text.encode()))
    assert [len(node.routes) for node in plan.nodes] == routes
    assert any("routes are the plan's" in one for one in made.changed) is (services.startswith("RIP"))


def test_a_default_route_of_core_to_nobody_is_said(tmp_path: Path) -> None:
    made = read(tmp_path, "x.xml", scenario("IPForward", "10.0.0.254"), core.read)
    assert not made.machines["pc"].routes and any("leads nowhere" in one for one in made.changed)


COMPOSE = "services:\n  a: {image: x, networks: {n: {ipv4_address: ADDRESS}}}\nnetworks: {n: {ipam: {config: [SUBNET]}}}\n"


@pytest.mark.parametrize(
    ("address", "subnet", "said"),
    [("10.6.0.3", "{subnet: 10.5.0.0/24}", "no subnet for the address"), ("10.5.0.300", "{subnet: 10.5.0.0/24}", "no subnet for"),
     ("10.5.0.3", "{subnet: 10.5.0.1/24}", "is no subnet")],
)  # fmt: skip
def test_a_wrong_address_of_compose_is_refused(address: str, subnet: str, said: str, tmp_path: Path) -> None:
    text = COMPOSE.replace("ADDRESS", address).replace("SUBNET", subnet)
    with pytest.raises(TopologyError, match=said):
        read(tmp_path, "compose.yaml", text, compose.read)


def test_the_subnet_of_ipv4_counts_beside_one_of_ipv6(tmp_path: Path) -> None:
    both = '{subnet: "2001:db8::/64"}, {subnet: 10.5.0.0/24}'
    made = read(
        tmp_path, "compose.yaml", COMPOSE.replace("ADDRESS", "10.5.0.3").replace("SUBNET", both), compose.read
    )
    assert made.machines["a"].addresses == {"n": ["10.5.0.3/24"]}


def test_services_of_compose_have_no_routes_by_others(tmp_path: Path) -> None:
    text = "services:\n  r: {sysctls: {net.ipv4.ip_forward: 1}, networks: [n, m]}\n  a: {networks: [n]}\n  b: {networks: [m]}\n"
    made = read(tmp_path, "compose.yaml", f"{text}networks: {{n: , m: }}\n", compose.read)
    plan = make_plan(parse("x.yaml", writing.write(made).text.encode()))
    assert not any(node.routes for node in plan.nodes)


def test_a_template_of_containerlab_is_refused_with_its_line(tmp_path: Path) -> None:
    text = "name: x\n# {{ no }}\ntopology:\n  nodes: {a: {kind: linux, cpu: '{{ .Cpu }}'}}\n"
    with pytest.raises(TopologyError, match=r"x.clab.yml:4: has a template"):
        read(tmp_path, "x.clab.yml", text, containerlab.read)


@pytest.mark.parametrize("values", ['"10"', "[10, 2, 5]", "{}"])
def test_values_of_a_filter_of_gns3_that_are_not_known_are_refused(values: str, tmp_path: Path) -> None:
    ends = ", ".join(f'{{"node_id": "{one}", "adapter_number": 0, "port_number": 0}}' for one in "ab")
    nodes = ", ".join(f'{{"name": "{one}", "node_id": "{one}", "node_type": "vpcs"}}' for one in "ab")
    link = f'{{"nodes": [{ends}], "filters": {{"delay": {values}}}}}'
    text = f'{{"revision": 9, "topology": {{"nodes": [{nodes}], "links": [{link}]}}}}'
    with pytest.raises(TopologyError, match="the packet filter delay has values that are not known"):
        read(tmp_path, "x.gns3", text, gns3.read)


def test_a_nat_of_mininet_takes_an_address_and_a_host_of_the_machine_is_said(tmp_path: Path) -> None:
    text = (
        "from mininet.net import Mininet\nnet = Mininet(autoSetMacs=True)\na = net.addHost('a')\n"
        "s = net.addSwitch('s1')\nnet.addLink(a, s)\nnet.addNAT().configDefault()\n"
        "b = net.addHost('b', inNamespace=False, privateDirs=['/x'])\nnet.addLink(b, s)\nnet.staticArp()\n"
    )
    made = read(tmp_path, "x.py", text, mininet.read)
    assert made.machines["b"].addresses == {"b-eth0": ["10.0.0.3/8"]}
    for said in ("autoSetMacs=True", "inNamespace=False", "privateDirs", "staticArp()"):
        assert any(said in one for one in made.left), said


@pytest.mark.parametrize(
    ("script", "addresses"),
    [("net.addLink(a, b)\nnet.build()\n", 1), ("net.build()\nnet.addLink(a, b)\nnet.start()\n", 0),
     ("net.start()\nnet.addLink(a, b)\nb.setIP('10.0.0.9/8')\n", 1), ("net.addLink(a, b)\n", 1)],
)  # fmt: skip
def test_a_host_of_mininet_that_is_joined_later_has_no_address_by_default(
    script: str, addresses: int, tmp_path: Path
) -> None:
    head = "from mininet.net import Mininet\nnet = Mininet()\na, b = net.addHost('a'), net.addHost('b')\n"
    made = read(tmp_path, "x.py", head + script, mininet.read)
    assert len(made.machines["b"].addresses) == addresses
    assert any("no address, as there" in one for one in made.changed) is (
        "build()\nnet.addLink" in script or "start()\nnet" in script
    )


def test_what_a_thread_does_later_is_said(tmp_path: Path) -> None:
    text = (
        "import threading\nfrom mininet.net import Mininet\nnet = Mininet()\nnet.addLink(net.addHost('a'), net.addHost('b'))\n"
        "threading.Timer(2, lambda: net.configLinkStatus('a', 'b', 'down')).start()\n"
    )
    made = read(tmp_path, "x.py", text, mininet.read)
    assert made.wires[0].down
    assert made.changed == [
        "line 5: configLinkStatus('a', 'b', 'down') after the pause of line 5: from the lab's start on here"
    ]
    late = "import time\nwhile True: time.sleep(1)"
    text = text.replace(
        "threading.Timer(2, lambda", "x = threading.Thread(target=lambda: exec(LATE)).start()\n#"
    )
    text = text.replace("import threading", f"LATE = {late!r}\nimport threading")
    assert "what a thread of the script does after its end" in read(tmp_path, "x.py", text, mininet.read).left


def test_all_names_of_a_module_of_mininet(tmp_path: Path) -> None:
    text = (
        "from mininet.net import *\nfrom mininet.node import *\nfrom mininet.link import *\nfrom mininet.log import *\n"
        "setLogLevel('info')\nnet = Mininet(host=CPULimitedHost, link=TCLink, controller=RemoteController)\n"
        "a, b = net.addHost('a', cpu=.5), net.addHost('b')\nnet.addLink(a, b, bw=3)\nnet.start()\n"
    )
    made = read(tmp_path, "x.py", text, mininet.read)
    assert made.machines["a"].keys and made.wires[0].impairments == {"both": {"rate": "3 Mbit/s"}}


def test_addresses_of_the_plan_are_said_where_a_file_has_none(tmp_path: Path) -> None:
    text = "name: x\ntopology:\n  defaults: {kind: linux}\n  nodes: {a: , b: }\n  links: [{endpoints: ['a:eth1', 'b:eth1']}]\n"
    written = writing.write(read(tmp_path, "x.clab.yml", text, containerlab.read))
    assert written.changed == ("a, b: no address in the file on some interface: addresses are the plan's",)
