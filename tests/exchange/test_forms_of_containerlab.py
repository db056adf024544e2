"""Tests constructs of the manuals of containerlab (variables, stages, links) and Kathará (lab.conf)."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.exchange import containerlab, kathara, writing
from orchestrator.exchange.clab_forms import with_defaults
from orchestrator.exchange.network import Network
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

TOPOLOGY = """\
name: lab
topology:
  kinds: {linux: {group: plain}}
  groups: {plain: {exec: ["sh -c 'test __clabNodeName__ = a && ip addr add 10.1.0.1/24 dev eth1'"]}}
  nodes:
    a: {kind: linux}
    b: {kind: linux}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
"""


def lab(tmp_path: Path, text: str) -> Network:
    (tmp_path / "x.clab.yml").write_text(text)
    return containerlab.read(tmp_path / "x.clab.yml")


def test_the_name_of_a_node_in_a_command_and_the_group_of_a_kind(tmp_path: Path) -> None:
    made = lab(tmp_path, TOPOLOGY)
    assert made.machines["a"].addresses == {"eth1": ["10.1.0.1/24"]} and not made.machines["b"].addresses


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("${A:-1}", "1"), ("${A-1}", "1"), ("${A:=1}", "1"), ("${A=1}", "1"), ("${A:+1}", ""), ("${A+1}", ""),
        ("$$A", "$A"), ("$A", "$A"), ("${A}", "${A}"), ("${A:-${B:-2}}", "2"), ("$${A:-1}", "${A:-1}"),
        ("a$1b", "a$1b"),
    ],
)  # fmt: skip
def test_variables_are_replaced_as_containerlab_does_without_an_environment(given: str, made: str) -> None:
    assert with_defaults(given.encode())[0] == made.encode()


def test_an_escaped_variable_is_that_of_the_node(tmp_path: Path) -> None:
    command = "exec: [\"sh -c 'ip addr add $$MINE dev eth1'\"], env: {MINE: 10.1.0.7/24}"
    made = lab(tmp_path, TOPOLOGY.replace("b: {kind: linux}", f"b: {{kind: linux, {command}}}"))
    assert made.machines["b"].addresses == {"eth1": ["10.1.0.7/24"]}


def test_commands_of_stages_run_before_exec_and_the_rest_is_named(tmp_path: Path) -> None:
    stages = (
        "stages: {configure: {exec: [{command: ip addr del 10.1.0.9/24 dev eth1, phase: on-exit}]}, "
        "create-links: {wait-for: [{node: a, stage: create}], "
        "exec: [{command: ip addr add 10.1.0.9/24 dev eth1}, {command: touch /x, target: host}]}}"
    )
    node = f"b: {{kind: linux, {stages}, exec: [ip addr add 10.1.0.8/24 dev eth1]}}"
    made = lab(tmp_path, TOPOLOGY.replace("b: {kind: linux}", node))
    assert made.machines["b"].addresses == {"eth1": ["10.1.0.8/24"]}
    said = "\n".join(made.left)
    assert "create-links.wait-for: no counterpart" in said and "`touch /x` is not run" in said


def test_addresses_of_a_link_in_the_short_form(tmp_path: Path) -> None:
    given = TOPOLOGY.replace('"b:eth1"]', '"b:eth1"]\n      ipv4: ["", 10.1.0.4/24]')
    made = lab(tmp_path, given)
    assert made.machines["b"].addresses == {"eth1": ["10.1.0.4/24"]}
    assert any("containerlab ignores it" in one for one in made.changed)


def test_a_stitched_link_is_a_link_and_other_types_are_named_or_refused(tmp_path: Path) -> None:
    long = (
        "    - type: {}\n      endpoints: [{{node: a, interface: eth1}}, {{node: b, interface: eth1}}]\n"
        "      endpoint: {{node: a, interface: eth1}}\n"
    )
    head = TOPOLOGY.partition("    - endp")[0]
    assert len(lab(tmp_path, head + long.format("veth-stitch")).wires) == 1
    made = lab(tmp_path, head + long.format("vxlan"))
    assert not made.wires and any("a link of type vxlan" in one for one in made.left)
    with pytest.raises(TopologyError, match=r"x.clab.yml:9: .*vethh: is no type of link"):
        lab(tmp_path, head + long.format("vethh"))


def test_two_links_at_one_interface_are_refused_with_the_second_line(tmp_path: Path) -> None:
    made = lab(tmp_path, TOPOLOGY + '    - endpoints: ["a:eth1", "b:eth2"]\n')
    with pytest.raises(TopologyError, match=r"x.clab.yml:10: a:eth1: is an interface with two links"):
        writing.write(made)


def test_links_that_are_no_list_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"topology.links: is no list"):
        lab(tmp_path, TOPOLOGY.replace("- endpoints", "one: {endpoints").replace('"b:eth1"]', '"b:eth1"]}'))


@pytest.mark.parametrize(("address", "count"), [("", 2), ("ip addr add 10.1.0.3/24 dev br0", 3)])
def test_a_bridge_within_a_node(address: str, count: int, tmp_path: Path) -> None:
    text = TOPOLOGY.partition("    a:")[0] + (
        "    br0|c: {kind: bridge, network-mode: 'container:c'}\n"
        f"    a: {{kind: linux}}\n    b: {{kind: linux}}\n"
        f'    c: {{kind: linux, exec: ["{address or "true"}"]}}\n'
        '  links: [{endpoints: ["a:eth1", "br0|c:p1"]}, {endpoints: ["b:eth1", "br0|c:p2"]}]\n'
    )
    made = lab(tmp_path, text)
    (lan,) = made.lans.values()
    assert len(lan.members) == count
    assert any("inside of c is the segment" in one for one in made.changed) == (count == 2)


def conf(tmp_path: Path, text: str, **files: str) -> Network:
    (tmp_path / "lab.conf").write_text(text)
    for name, content in files.items():
        (tmp_path / name.replace("_", ".")).write_text(content)
    return kathara.read(tmp_path)


def test_a_command_without_quotes_is_taken_whole(tmp_path: Path) -> None:
    made = conf(tmp_path, "a[0]=A # one\nb[0]=A\na[exec]=ip addr add 10.1.0.5/24 dev eth0\n")
    assert made.machines["a"].addresses == {"eth0": ["10.1.0.5/24"]}


def test_quotes_within_a_command_stay(tmp_path: Path) -> None:
    made = conf(tmp_path, "a[0]=A\nb[0]=A\na[exec]=\"sh -c 'ip addr add 10.1.0.5/24 dev eth0'\"\n")
    assert made.machines["a"].addresses == {"eth0": ["10.1.0.5/24"]}


def test_the_environment_of_a_machine_in_its_scripts(tmp_path: Path) -> None:
    made = conf(
        tmp_path, 'a[0]=A\nb[0]=A\na[env]="MINE=10.1.0.6/24"\n', a_startup="ip addr add $MINE dev eth0\n"
    )
    assert made.machines["a"].addresses == {"eth0": ["10.1.0.6/24"]}
    assert any("only the startup commands have it" in one for one in made.left)


def test_a_script_of_the_shared_folder(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "up.sh").write_text("ip addr add 10.1.0.$1/24 dev eth0\n")
    made = conf(tmp_path, "a[0]=A\nb[0]=A\n", a_startup="bash /shared/up.sh 8\n", a_shutdown="true\n")
    assert made.machines["a"].addresses == {"eth0": ["10.1.0.8/24"]}
    assert any(one.startswith("a.shutdown: ") for one in made.left)


@pytest.mark.parametrize(
    ("sysctl", "script", "forward"),
    [("", "", True), ("", "sysctl -w net.ipv4.ip_forward=0", False),
     ("a[sysctl]=net.ipv4.ip_forward=0\n", "echo 1 > /proc/sys/net/ipv4/ip_forward", True),
     ("a[sysctl]=net.ipv4.ip_forward=0\n", "", False)],
)  # fmt: skip
def test_what_a_script_does_to_forwarding_counts_last(
    sysctl: str, script: str, forward: bool, tmp_path: Path
) -> None:
    made = conf(tmp_path, f"a[0]=A\na[1]=B\nb[0]=A\nc[0]=B\n{sysctl}", a_startup=script + "\n")
    assert made.machines["a"].forward is forward


@pytest.mark.parametrize(
    ("line", "said"),
    [("a[0]=B", "is an interface that another line has put"), ('a[1]="B"x', "is no line of a lab.conf")],
)
def test_lines_that_kathara_refuses_are_refused(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=f"lab.conf:3: .*{said}"):
        conf(tmp_path, f"a[0]=A\nb[0]=A\n{line}\n")


ROUTED = """\
a[0]=A
r[0]=A
r[1]=B
b[0]=B
"""
ADDRESSES = {
    "a_startup": "ip addr add 10.1.0.1/24 dev eth0\nip route add default via 10.1.0.2\n",
    "r_startup": "ip addr add 10.1.0.2/24 dev eth0\nip addr add 10.2.0.1/24 dev eth1\n",
}


@pytest.mark.parametrize(
    ("script", "routes"),
    [("ip addr add 10.2.0.2/24 dev eth0\n", 0), ("hostname b\n", 1),
     ("ip addr add 10.2.0.2/24 dev eth0\nip route add default via 10.2.0.1\n", 1)],
)  # fmt: skip
def test_a_machine_without_a_route_has_none_where_the_file_gives_all_addresses(
    script: str, routes: int, tmp_path: Path
) -> None:
    written = writing.write(conf(tmp_path, ROUTED, **ADDRESSES, b_startup=script))
    plan = make_plan(parse("x.yaml", written.text.encode()))
    (b,) = (node for node in plan.nodes if node.name == "b")
    assert len(b.routes) == routes
    assert any("addresses and routes are the plan's" in one for one in written.changed) == ("host" in script)
