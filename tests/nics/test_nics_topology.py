"""Tests NICs in a topology: what the check refuses without looking at the machine, and what the plan
contains.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.kernel.limits import nic_problems
from orchestrator.kernel.registry import machine_of
from orchestrator.plan.build import make_plan
from orchestrator.plan.nics import nic_uses
from orchestrator.run.prepare import insist_it_fits, without_nics
from orchestrator.topology import Problem, TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: nics
segments: {lan: {subnet: 10.1.0.0/24}, far: {}}
nodes:
  light: {segment: lan}
  guest: {segment: lan, kind: vm}
  both: {segment: [lan, far]}
groups: {many: {count: 2, segment: lan}}
links:
  bridge: {between: [lan, far]}
  cable: {between: [light, lan]}
captures: {point: {at: node guest}}
timeline:
  - {at: hold, partition: [guest], for: 1 s}
run: {hold: 5 s}
"""
LINK = "  cable: {between: [light, lan]}\n"
CABLE = 'cable: {between: [light, lan], nics: {a: "0000:01:00.0", b: enp1s0f1}, both: {delay: 5 ms}}'
TRUNK = "bridge: {between: [lan, far], nics: {a: enp2s0f0, b: enp2s0f1}}"


def changed(*pairs: tuple[str, str]) -> bytes:
    text = FILE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text.encode()


def nic(node: str, value: str, kind: str = "") -> tuple[str, str]:
    return f"{node}: {{segment: lan{kind}}}", f"{node}: {{segment: lan{kind}, nic: {value}}}"


VM = ", kind: vm"
CABLED = ("cable: {between: [light, lan]}", CABLE)
OTHER = ("both: {segment: [lan, far]}", "both: {segment: [lan, far], nic: {far: '01:00.0'}}")


def through(a: str, b: str, end: str = "light") -> tuple[str, str]:
    return "[light, lan]", f"[{end}, lan], nics: {{a: {a}, b: {b}}}"


REFUSED = [
    ([nic("light", "a/b")], "nodes.light.nic", "is not a NIC"),
    ([nic("light", '"1:2"')], "nodes.light.nic", "is not a NIC"),
    ([nic("light", "7")], "nodes.light.nic", "is not a NIC"),
    ([nic("light", "sixteen-letters-x")], "nodes.light.nic", "is not a NIC"),
    ([nic("light", "{far: eno2}")], "nodes.light.nic", "light is not on this segment"),
    ([nic("light", "eno2")], "links.cable", "whose other end is outside the lab"),
    ([nic("guest", "eno2", VM)], "captures.point.at", "has no other end in the lab"),
    ([nic("guest", "eno2", VM)], "timeline[0].partition", "other end is outside the lab"),
    (
        [(LINK, ""), nic("light", "eno2"), ("partition: [guest], for: 1 s", "kill: light")],
        "timeline[0].kill",
        "has no program, and the roles of its agent cannot be stopped, nor can its NIC's link be cut",
    ),
    ([CABLED, nic("light", "eno3")], "links.cable.nics", "names a NIC for lan"),
    ([through("eno2", "eno3", "many")], "links.cable.nics", "many is a group"),
    ([through("eno2", "eno2")], "links.cable.nics.b", "is already that of"),
    ([CABLED, OTHER], "links.cable.nics.a", "is already that of nodes.both.nic.far"),
    ([("[light, lan]", "[light, lan], nics: {a: eno2}")], "links.cable.nics.b", "missing"),
]  # fmt: skip


@pytest.mark.parametrize(("pairs", "place", "rule"), REFUSED, ids=lambda value: None)
def test_refused_at_its_place(pairs: list[tuple[str, str]], place: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse("file.yaml", changed(*pairs))
    found = [str(problem) for problem in caught.value.problems]
    assert any(place in text and rule in text for text in found), found


def plan() -> Plan:
    """Returns a plan of a light node, a guest and two segments behind cables, with a second interface plugged
    in elsewhere.
    """
    text = changed(
        ("cable: {between: [light, lan]}", CABLE),
        ("bridge: {between: [lan, far]}", TRUNK),
        ("both: {segment: [lan, far]}", 'both: {segment: [lan, far], nic: {far: "8086:10c9"}}'),
        ("captures: {point: {at: node guest}}", "captures: {point: {at: node light}}"),
        (
            "  cable:",
            '  passed: {between: [guest, lan], nics: {a: "01:00.1", b: eno4}, both: {delay: 1 ms}}\n  cable:',
        ),
    )
    return make_plan(parse("file.yaml", text))


def test_every_nic_and_where_it_goes() -> None:
    uses = {use.place: (use.asked, use.kind, use.netns, use.name) for use in nic_uses(plan())}
    assert uses == {
        "nodes.light.eth0": ("0000:01:00.0", "namespace", "vnet-nics.light", "eth0"),
        "nodes.light.eth0.cable": ("enp1s0f1", "namespace", "vnet-nics", "light"),
        "nodes.guest.eth0": ("01:00.1", "vm", "", ""),
        "nodes.guest.eth0.cable": ("eno4", "namespace", "vnet-nics", "guest"),
        "nodes.both.eth1": ("8086:10c9", "namespace", "vnet-nics.both", "eth1"),
        "links.bridge.a": ("enp2s0f0", "namespace", "vnet-nics", "bridge-a"),
        "links.bridge.b": ("enp2s0f1", "namespace", "vnet-nics", "bridge-b"),
    }


def test_no_step_makes_what_the_machine_has() -> None:
    made = plan()
    text = "".join(step.text for step in made.steps if step.tool == "ip")
    lines = text.splitlines()
    for device in ("light", "guest", "bridge-a", "bridge-b"):
        assert not [
            line for line in lines if line.startswith(("link add", "tuntap")) and f" {device} " in line
        ]
        assert [line for line in lines if line.startswith(f"link set dev {device} master")]
    assert "link set dev light master br-lan up" in lines
    assert "link set dev guest master x-guest up" in lines, "a guest's impairments stand between two bridges"
    assert "both-1" not in text, "what its other end is plugged into is not the lab's"
    (card,) = next(node.interfaces for node in made.nodes if node.name == "light")
    assert (card.nic, card.cable, card.port, card.pci) == ("0000:01:00.0", "enp1s0f1", "light", None)


def test_a_plan_with_nics_survives_its_file() -> None:
    made = plan()
    assert from_json(Plan, to_json(made)) == made


def test_a_libvirt_elsewhere_has_other_nics() -> None:
    remote = dataclasses.replace(plan(), libvirt="qemu+ssh://lab7/system")
    machine = machine_of(remote)
    assert machine is not None and machine.host == "lab7", "a run asks that machine for its NICs"
    insist_it_fits(remote)
    with pytest.raises(TopologyError, match="no such NIC is in this machine"):
        insist_it_fits(plan())
    local = nic_problems(plan())
    assert {problem.path for problem in local} == {use.place for use in nic_uses(plan())}, (
        "none is in this machine"
    )


def test_check_of_an_absent_nic_has_the_status_of_a_refused_file() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "orchestrator.cli.main", "check", "topologies/mqtt-hil-light.yaml"]
    asked = ["-p", "port_a=nosuch0", "-p", "port_b=nosuch1"]
    done = subprocess.run([*command, *asked], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert 'nodes.broker.eth0: "nosuch0": no such NIC is in this machine; it has' in done.stderr
    assert 'nodes.broker.eth0.cable: "nosuch1"' in done.stderr


def test_a_plan_may_assume_the_nics_of_another_machine_and_nothing_else() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "orchestrator.cli.main", "plan", "topologies/mqtt-hil-light.yaml"]
    command += ["-p", "port_a=nosuch0", "-p", "port_b=nosuch1", "--assume-nics"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'assumed: nodes.broker.eth0: NIC "nosuch0"' in done.stderr
    assert 'assumed: nodes.broker.eth0.cable: NIC "nosuch1"' in done.stderr
    assert "nosuch0    eth0 in vnet-mqtt-hil-light.broker" in done.stdout
    one = plan()
    others = [Problem("nics.yaml", 0, "memory", "", "", ""), *nic_problems(one)]
    assert without_nics(one, others) == others[:1]


def test_a_cable_left_out_is_no_link_of_its_own_unless_something_names_it() -> None:
    def plan(*pairs: tuple[str, str]) -> Plan:
        return make_plan(parse("nics.yaml", changed(*pairs)))

    events = FILE[FILE.index("timeline:") : FILE.index("run:")]
    quiet, left_out = (events, ""), ("[light, lan]}", "[light, lan], nics: none}")
    without = plan(quiet, ("  cable: {between: [light, lan]}\n", ""))
    assert plan(quiet, left_out).links == without.links
    named = plan(left_out, ("partition: [guest]", "link-down: [cable]"))
    assert "cable" in [link.name for link in named.links]
