"""Tests the plan of a lab over several hosts: sites stay on one host; tunnels, MTUs, notes, inventory and
refusals.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.clone import clones
from orchestrator.plan.placement.loads import between, of_host
from orchestrator.plan.render import render
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

HOSTS = """hosts:
  a: {machine: local, cores: 4, memory: 8 GB}
  b: {machine: ssh://root@b, cores: 4, memory: 8 GB}
"""
LAN = "segments: {x: {subnet: 10.0.0.0/24}}\n"
SITES = """name: sites
%ssegments: {trunk: {subnet: 10.0.0.0/16}, s1: {}, s2: {}}
nodes:
  hub: {segment: trunk}
  b1: {segment: s1, software: {m: {broker: mosquitto}}}
  b2: {segment: s2, software: {m: {broker: mosquitto}}}
groups:
  m1: {count: 20, segment: s1, software: {p: {mqtt: {broker: b1, publish: {topic: t, rate: 20 /s}}}}}
  m2: {count: 20, segment: s2, software: {p: {mqtt: {broker: b2, publish: {topic: t, rate: 20 /s}}}}}
links:
  w1: {between: [s1, trunk], both: {delay: 10 ms}}
  w2: {between: [s2, trunk], both: {delay: 50 us}}
captures: {all: {at: segment trunk}}
run: {connect_interval: 10 ms, hold: 5 s, drain: 1 s}
"""


def _plan(head: str = HOSTS) -> Plan:
    return make_plan(parse("sites.yaml", (SITES % head).encode()))


def _refused(head: str) -> str:
    with pytest.raises(TopologyError) as caught:
        _plan(head)
    return str(caught.value)


def test_a_site_stays_whole_and_its_traffic_at_home() -> None:
    plan = _plan()
    at = {node.name: node.host for node in plan.nodes}
    for site in "12":
        assert {at[f"b{site}"]} == {at[node.name] for node in plan.nodes if node.group == f"m{site}"}
    assert at["b1"] != at["b2"]
    assert [tunnel.segment for tunnel in plan.tunnels] == ["trunk"]
    assert not [p for p in plan.predictions if p.name == "traffic"]
    assert sum(p.value for p in plan.predictions if p.name == "nodes") == len(plan.nodes)


def test_traffic_between_hosts_is_what_flows_carry() -> None:
    text = f"""name: one
{HOSTS}segments: {{lan: {{subnet: 10.0.0.0/24}}}}
nodes:
  server: {{segment: lan, host: a, software: {{m: {{broker: mosquitto}}}}}}
  client:
    segment: lan
    host: b
    software: {{p: {{mqtt: {{broker: server, publish: {{topic: t, rate: 10 /s}}}}}}}}
run: {{hold: 5 s, drain: 1 s}}
"""
    plan = make_plan(parse("one.yaml", text.encode()))
    (found,) = (p for p in plan.predictions if p.name == "traffic")
    assert (found.scope, found.value) == (between("b", "a"), 10 * 8 * (717 + 66))
    assert {p.value for p in plan.predictions if (p.name, p.scope) == ("nodes", of_host("a"))} == {1.0}


def test_the_text_says_who_stands_where_and_what_joins_them() -> None:
    text = render(_plan())
    for title in ("Hosts\n", "Where the parts stand\n", "Tunnels between hosts (VXLAN)\n"):
        assert title in text
    assert "ssh://root@b" in text and "m1 ... m1" not in text and "m11 ... m120" in text


def test_without_hosts_a_plan_has_none() -> None:
    plan = _plan("")
    assert (plan.hosts, plan.tunnels) == ((), ())
    assert {node.host for node in plan.nodes} | {step.host for step in plan.steps} == {""}
    assert "Hosts" not in render(plan)


@pytest.mark.parametrize(
    ("underlay", "mtu", "note"),
    [
        ("{}", 1500, "sent between hosts in two packets"),
        ("{mtu: 1550}", 1500, ""),
        ("{oversize: lower}", 1450, "MTUs above 1450 are lowered"),
        ("{oversize: lower, mtu: 9000}", 1500, "MTUs above 8950 are lowered"),
    ],
)
def test_mtu_and_tunnels(underlay: str, mtu: int, note: str) -> None:
    plan = _plan(f"{HOSTS}underlay: {underlay}\n")
    assert {tunnel.mtu for tunnel in plan.tunnels} == {s.mtu for s in plan.segments} == {mtu}
    said = [n.text for n in plan.notes if n.place.startswith("underlay")]
    assert any(note in text for text in said) if note else not said


def test_mtu_refused() -> None:
    said = _refused(f"{HOSTS}underlay: {{oversize: refuse}}\n")
    assert "segments.trunk.mtu: 1500: stands on several hosts, and the underlay's 1500 leave 1450" in said


@pytest.mark.parametrize("said", ['local, address: "fd00::1",', '"ssh://[fd00::1]",'])
def test_tunnels_of_ipv6_hosts_take_more_and_are_not_sent_in_two(said: str) -> None:
    hosts = HOSTS.replace("local,", said)
    refused = _refused(f"{hosts}underlay: {{mtu: 1550}}\n")
    assert "underlay's 1550 leave 1480 inside a tunnel; IPv6 does not fragment its packets" in refused
    assert "write `mtu: 1480`, or `underlay: {oversize: lower}`" in refused
    assert {t.mtu for t in _plan(f"{hosts}underlay: {{mtu: 1570}}\n").tunnels} == {1500}
    assert {t.mtu for t in _plan(f"{hosts}underlay: {{oversize: lower}}\n").tunnels} == {1430}


def test_notes_of_captures_delays_and_what_nobody_said() -> None:
    plan = _plan("hosts: {a: {machine: local}, b: {machine: ssh://b}}\nunderlay: {delay: 100 us}\n")
    notes = {note.place: note.text for note in plan.notes}
    assert "sees what passes the bridge of trunk on" in notes["captures.all"]
    assert "w2 ask for less delay than the 100 us" in notes["underlay.delay"]
    assert "w1" not in notes["underlay.delay"]
    assert "is unknown: the plan assumes" in notes["hosts"]


def test_ports_of_each_host_bound_its_bridge() -> None:
    text = "name: ports\n%ssegments: {x: {subnet: 10.0.0.0/20}}\ngroups: {g: {count: 30, segment: x}}\n"
    hosts = "hosts: {a: {machine: local, bridge_ports: 11}, b: {machine: ssh://b, bridge_ports: %d}}\n"
    plan = make_plan(parse("ports.yaml", (text % (hosts % 21)).encode()))
    count = [sum(node.host == host for node in plan.nodes) for host in "ab"]
    assert count == [10, 20]
    with pytest.raises(TopologyError, match="its bridge of x has 19 ports beside the tunnel's"):
        make_plan(parse("ports.yaml", (text % (hosts % 20)).encode()))


def test_a_nic_keeps_its_node_on_the_host_that_has_it() -> None:
    hosts = HOSTS.replace("ssh://root@b,", "ssh://root@b, nics: [enp1s0f0],")
    text = f"name: hw\n{hosts}{LAN}nodes: {{n: {{segment: x, nic: enp1s0f0}}}}\n"
    (node,) = make_plan(parse("hw.yaml", text.encode())).nodes
    assert node.host == "b"


def test_clones_stand_where_their_model_does() -> None:
    text = f"name: c\n{HOSTS}{LAN}groups: {{g: {{count: 2, segment: x, host: b}}}}\n"
    (clone,) = clones(make_plan(parse("c.yaml", text.encode())), {}, "g", 1)
    assert clone.node.host == "b" and {step.host for step in clone.steps} == {"b"}


INVENTORY = """lab_hosts:
  vars: {ansible_user: root, vnet_memory: 8 GB}
  hosts:
    here: {ansible_connection: local, vnet_cores: 2}
    rack1: {ansible_host: 10.0.0.1, ansible_port: 2222, vnet_address: 10.9.0.1, vnet_cpu_clock: 2.4 GHz}
"""


def _inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = tmp_path / "hosts.yml"
    path.write_text(text)
    monkeypatch.setenv("VNET_INVENTORY", str(path))
    return path


def test_names_come_from_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _inventory(tmp_path, monkeypatch, INVENTORY)
    plan = make_plan(parse("sites.yaml", (SITES % "").encode(), None, ["all"]))
    here, rack = plan.hosts
    assert (here.name, here.machine, here.cores, here.memory_bytes) == ("here", "", 2.0, 8_000_000_000)
    assert (rack.machine, rack.address, rack.core_mhz) == ("ssh://root@10.0.0.1:2222", "10.9.0.1", 2400.0)
    with pytest.raises(
        TopologyError, match=r'sites.yaml: --hosts: "rack2": is not in .*did you mean "rack1"'
    ):
        parse("sites.yaml", (SITES % "").encode(), None, ["rack2"])


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("vnet_cores", "vnet_core", r"hosts.yml:4: lab_hosts.hosts.here.vnet_core: is no variable of vNET"),
        ("8 GB", "8", r"hosts.yml:\d: lab_hosts.hosts.here.memory: .*has no unit"),
        ("lab_hosts", "others", "hosts.yml:1: has no group lab_hosts with hosts"),
    ],
)
def test_mistakes_of_the_inventory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, rule: str
) -> None:
    _inventory(tmp_path, monkeypatch, INVENTORY.replace(old, new))
    with pytest.raises(TopologyError, match=rule):
        parse("sites.yaml", (SITES % "hosts: [here]\n").encode())


def test_an_inventory_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _inventory(tmp_path, monkeypatch, INVENTORY).unlink()
    with pytest.raises(TopologyError, match=r"hosts.yml: cannot be read .*name another by VNET_INVENTORY"):
        parse("sites.yaml", (SITES % "hosts: [here]\n").encode())
