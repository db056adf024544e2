"""Tests rules for every kind of software: one example of each is planned and compared with the assumptions
that other parts make.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.registry import KINDS, MODULES, kind_of, programs
from orchestrator.topology.loading import parse

ROOT = Path(__file__).parents[2]
# kind -> software of the node `server`, software of each of the three nodes of the group `client`
PROJECT = Path(__file__).resolve().parents[2]
ROWS = {
    "mosquitto": ("{s: {broker: mosquitto, port: 1884}}", "{}"),
    "rabbitmq": ('{s: {broker: rabbitmq, plugins: [mqtt, "amqp1.0"], options: {rabbit.x: 1}}}', "{}"),
    "mochi": ("{s: {broker: mochi, port: 1884, users: {a: b}, persistence: true}}", "{}"),
    "rumqttd": ('{s: {broker: rumqttd, version: "3.1.1", users: {a: b}}}', "{}"),
    "aedes": ("{s: {broker: aedes, users: {a: b}}}", "{}"),
    "amqtt": ("{s: {broker: amqtt, port: 1885}}", "{}"),
    "moquette": ("{s: {broker: moquette, persistence: true}}", "{}"),
    "nats-server": ("{s: {broker: nats-server, port: 4223, users: {a: b}}}", "{}"),
    "nats": (
        "{b: {broker: nats-server}, s: {nats: {broker: server, subscribe: [m.>]}}}",
        '{c: {nats: {broker: server, publish: {subject: "m.{index}", rate: 3 /s}}}}',
    ),
    "mqtt": (
        "{b: {broker: mosquitto}, s: {mqtt: {broker: server, subscribe: [{topic: m/#, qos: 1}]}}}",
        '{c: {mqtt: {broker: server, publish: {topic: "m/{index}", qos: 1, rate: 3 /s}}}}',
    ),
    "amqp": (
        '{b: {broker: rabbitmq}, s: {amqp: {broker: server, consume: {exchange: e, keys: ["#"], queue: q}}}}',
        '{c: {amqp: {broker: server, publish: {exchange: e, key: "m.{index}", rate: 3 /s}}}}',
    ),
    "command": (
        "{s: {command: [sleep, inf], receives: true}}",
        '{c: {command: "ping {{ addresses.server }}", flows: {f: {to: [server], size: 50 B, rate: 1 /s}}}}',
    ),
    "frames": ("{}", "{}"),
    "udp": (
        "{s: {udp: {listen: 9000}}}",
        "{c: {udp: {to: server, request: {size: 100 B, reply: 400 B, rate: 5 /s}}}}",
    ),
    "tcp": (
        "{s: {tcp: {listen: 9001, nodelay: true}}}",
        "{c: {tcp: {to: server, push: {size: 100 B, rate: 5 /s}}}}",
    ),
    "http": (
        "{s: {http: {listen: 80, tls: lab}}}",
        "{c: {http: {to: server, tls: lab, request: {size: 100 B, reply: 400 B, rate: 5 /s}}}}",
    ),
    "coap": (
        "{s: {coap: {listen: 5683, notify: {size: 100 B, rate: 2 /s}}}}",
        "{c: {coap: {to: server, observe: true, request: {size: 100 B, reply: 4 kB, rate: 5 /s}}}}",
    ),
    "zeromq": (
        "{s: {zeromq: {router: 5555, request: {size: 1699 B, reply: 1699 B, rate: 5 /s}}}}",
        "{c: {zeromq: {dealer: server}}}",
    ),
    "frr": ("{s: {frr: {ospf: {}, bgp: {as: 65001}}}}", "{}"),
    "sampled-values": (
        "{s: {sampled-values: {subscribe: client}}}",
        '{c: {sampled-values: {publish: {sv_id: "MU{index}", rate: 480 /s, asdus: 2}}}}',
    ),
    "goose": (
        "{s: {goose: {subscribe: client}}}",
        "{c: {goose: {publish: {rate: 1 /s}}}}",
    ),
    "synchrophasor": (
        "{s: {synchrophasor: {listen: 4712, data: {rate: 50 /s}}}}",
        "{c: {synchrophasor: {to: server}}}",
    ),
    "middleware": (
        "{s: {middleware: {listen: 7000, use: rmi, serialiser: kryo, publish: {rate: 5 /s}}}}",
        "{a: {middleware: {to: server, push: {rate: 2 /s}}}, b: {middleware: {to: server, subscribe: true}}}",
    ),
    "ftp": (
        "{s: {ftp: {listen: 21}}}",
        "{c: {ftp: {to: server, download: {size: 1 MB, rate: 1 /s}, upload: {size: 10 kB, rate: 1 /s}}}}",
    ),
    "adaptive": (
        "{s: {adaptive: {listen: 7100}}}",
        "{c: {adaptive: {to: server, push: {size: 200 B, rate: 3 /s}}}}",
    ),
    "gateway": (
        "{s: {gateway: {link: wan, broker: server, flows: {a: "
        "{service: best-effort, group: g, minimum: 9 kbit/s}}}}, b: {reservations: {}}}",
        "{}",
    ),
    "station": ("{s: {station: {link: wan, receive: {rate: 80 Mbit/s}}}}", "{}"),
    "reservations": ("{s: {reservations: {response: 5 s}}}", "{}"),
    "nat": ("{n: {nat: {inside: far, outside: out, ports: [{port: 80, to: other}]}}}", "{}"),
    "dhcp": ("{s: {dhcp: {}}}", "{c: {dhcp-client: {}}}"),
    "dhcp-client": ("{s: {dhcp: {}}}", "{c: {dhcp-client: {}}}"),
    "advertise": ("{s: {advertise: {}}}", "{c: {slaac: {}}}"),
    "slaac": ("{s: {advertise: {every: 30 s}}}", "{c: {slaac: {}}}"),
    "dhcp6": ("{s: {dhcp6: {}}}", "{c: {dhcp6-client: {}}}"),
    "dhcp6-client": ("{s: {dhcp6: {lease: 5 min}}}", "{c: {dhcp6-client: {}}}"),
    "wireguard": (
        "{s: {wireguard: {address: 10.99.0.1/24, peers: {other: {allows: [10.3.0.0/24]}}}}}",
        "{}",
    ),
    "dns": ("{s: {dns: {domain: lab.test, names: {www: other}}}}", "{c: {dns: {forward: server}}}"),
    "bulk": ("{s: {bulk: {listen: 5201}}}", "{c: {bulk: {to: server, congestion: reno, streams: 2}}}"),
}
FILE = """\
name: kinds
routing: none
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}, out: {{subnet: 10.2.0.0/24}}}}
nodes:
  server: {{segment: {3}, forward: true, software: {0}}}
  other: {{segment: near, software: {2}}}
groups:
  client: {{count: 3, segment: near, software: {1}}}
links:
  way: {{between: [near, far], both: {{delay: 10 ms}}}}
  wan:
    between: [server, other]
    both: {{rate: 1 Mbit/s, queue: {{htb: {{a: {{port: 9, rate: 99 kbit/s}}, rest: {{rate: 9 kbit/s}}}}}}}}
run: {{hold: 10 s}}
"""


def planned(kind: str) -> Plan:
    other = "{t: {frames: {to: server}}}" if kind == "frames" else "{}"
    if kind == "wireguard":
        other = "{t: {wireguard: {address: 10.99.0.2/24, peers: [server]}}}"
    segment = "[far, out]" if kind == "nat" else "far"  # a NAT router has two sides
    text = FILE.format(*ROWS[kind], other, segment)
    if kind in ("advertise", "slaac", "dhcp6", "dhcp6-client"):
        text = text.replace("subnet: 10.1.0.0/24", 'subnet: [10.1.0.0/24, "fd00:1::/64"]')
    return make_plan(parse("kinds.yaml", text.encode()))


def test_every_kind_has_a_row() -> None:
    assert ROWS.keys() == KINDS.keys()
    assert all(kind.name == name for name, kind in KINDS.items())
    assert {name: kind.key for name, kind in KINDS.items()} == {
        n: module.key for n, module in MODULES.items()
    }


def test_a_file_loads_the_modules_of_its_kinds_and_no_others() -> None:
    """Shows that a topology loads only the modules of its kinds; all kinds together are a third of a
    command's modules.
    """
    code = (
        "import sys; from orchestrator.topology import load; from pathlib import Path;"
        "load(Path('topologies/pair.yaml'), {}); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    modules = {f"orchestrator.software.{one.module}" for one in MODULES.values()}
    used = {f"orchestrator.software.{MODULES[one].module}" for one in ("command", "mqtt", "mosquitto")}
    assert modules.intersection(loaded) == used


@pytest.mark.parametrize("name", KINDS)
def test_the_plan_survives_its_file(name: str) -> None:
    plan = planned(name)
    assert from_json(Plan, to_json(plan)) == plan == planned(name)
    found = [software for node in plan.nodes for software in node.software if software.kind == name]
    assert found, "the row has no software of its kind"
    for software in found:
        assert json.loads(json.dumps(software.spec)) == software.spec
        assert KINDS[name].in_agent == (software.process is None)


@pytest.mark.parametrize("name", KINDS)
def test_flows_name_endpoints_and_sets_that_exist(name: str) -> None:
    plan = planned(name)
    sessions = [s.session for node in plan.nodes for s in node.software if s.session is not None]
    endpoints = {session.endpoint for session in sessions}
    assert len(endpoints) == len(sessions)
    assert len({flow.name for flow in plan.flows}) == len(plan.flows)
    for flow in plan.flows:
        assert flow.sender in endpoints
        assert 0 <= flow.start_ns <= flow.stop_ns <= plan.ramp_ns + plan.hold_ns
        assert flow.payload.bytes > 0 and (flow.reply is not None) == (flow.pattern == "request")
        for delivery in flow.deliveries:
            receivers = plan.receivers[delivery.receivers]
            assert receivers and set(receivers) <= endpoints - {flow.sender}
            assert delivery.guarantee.rule.startswith(delivery.guarantee.name)
    assert {d.receivers for flow in plan.flows for d in flow.deliveries} == plan.receivers.keys()


@pytest.mark.parametrize("name", KINDS)
def test_the_ramp_gives_each_client_its_turn(name: str) -> None:
    plan = planned(name)
    roles = [s for node in plan.nodes for s in node.software if KINDS[s.kind].in_agent]
    sessions = [s.session for s in roles if s.session is not None]
    turns = sorted(session.connect_ns for session in sessions if not session.listens)
    assert turns == [200_000_000 * place for place in range(len(turns))]
    assert all(session.connect_ns == 0 for session in sessions if session.listens)


@pytest.mark.parametrize("name", KINDS)
def test_words_and_costs(name: str) -> None:
    plan, kind = planned(name), KINDS[name]
    for software in (s for node in plan.nodes for s in node.software if s.kind == name):
        endpoint = software.session.endpoint if software.session else None
        flows = [flow for flow in plan.flows if flow.sender == endpoint]
        assert 0 < len(kind.words(software, flows)) < 300
        costs = kind.costs(software, flows)
        assert costs.memory_bytes >= 0 and all(count >= 0 < size for count, size in costs.packets)


def test_what_programs_need_is_installed_by_us() -> None:
    listed = subprocess.run(
        [ROOT / "images" / "packages.sh", "--list", "run", "middleware", "brokers"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(program.install for program in programs())
    assert {program.package for program in programs() if not program.built_by} <= set(listed.stdout.split())


def test_a_plan_says_which_programs_it_needs() -> None:
    needed = {name: {program.name for program in planned(name).programs} for name in KINDS}
    for name, kind in KINDS.items():
        assert {program.name for program in kind.programs} <= needed[name]


def test_software_of_the_file_knows_its_kind() -> None:
    for name, kind in KINDS.items():
        model = kind.model.model_construct()
        assert kind_of(model).name == name
        assert dataclasses.is_dataclass(kind)
