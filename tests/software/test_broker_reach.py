"""Tests bridges of mosquitto and clusters of RabbitMQ: the receivers of a message through several brokers,
and mistakes.
"""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from contract.plan import File, Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

BRIDGED = """\
name: bridged
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: lan, software: {b: {broker: mosquitto, bridges: [{to: b, topics: [{topic: m/#, qos: 1}]}]}}}
  b:
    segment: lan
    software: {b: {broker: mosquitto, port: 1884, bridges: [{to: c, topics: [{topic: m/1, qos: 0}]}]}}
  c: {segment: lan, software: {b: {broker: mosquitto, bridges: [{to: a, topics: [{topic: "#"}]}]}}}
  near: {segment: lan, software: {r: {mqtt: {broker: a, subscribe: [{topic: "#", qos: 2}]}}}}
  middle: {segment: lan, software: {r: {mqtt: {broker: b, subscribe: [{topic: "m/+", qos: 2}]}}}}
  far: {segment: lan, software: {r: {mqtt: {broker: c, subscribe: [{topic: "m/+", qos: 2}]}}}}
  one: {segment: lan, software: {s: {mqtt: {broker: a, publish: {topic: m/1, qos: 2, rate: 1 /s}}}}}
  two: {segment: lan, software: {s: {mqtt: {broker: a, publish: {topic: m/2, qos: 2, rate: 1 /s}}}}}
  other: {segment: lan, software: {s: {mqtt: {broker: a, publish: {topic: n, qos: 2, rate: 1 /s}}}}}
run: {hold: 10 s}
"""
CLUSTER = """\
name: cluster
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  r1: {segment: lan, software: {b: {broker: rabbitmq, cluster: [r1, r2]}}}
  r2: {segment: lan, software: {b: {broker: rabbitmq, cluster: [r1, r2]}}}
  m: {segment: lan, software: {b: {broker: mosquitto}}}
  near: {segment: lan, software: {r: {mqtt: {broker: r1, subscribe: [{topic: "#", qos: 1}]}}}}
  far: {segment: lan, software: {r: {mqtt: {broker: r2, subscribe: [{topic: "#", qos: 1}]}}}}
  sender: {segment: lan, software: {s: {mqtt: {broker: r1, publish: {topic: m, qos: 1, rate: 1 /s}}}}}
run: {hold: 10 s}
"""


def files_at(plan: Plan, node: int) -> dict[str, File]:
    """Returns the files of a node's first software by their paths."""
    process = plan.nodes[node].software[0].process
    assert process is not None
    return {file.path: file for file in process.files}


def owed(plan: Plan, sender: str) -> dict[str, tuple[str, ...]]:
    """Returns the receivers of a sender's messages by the name of their guarantee."""
    (flow,) = [flow for flow in plan.flows if flow.sender == sender]
    return {one.guarantee.name: plan.receivers[one.receivers] for one in flow.deliveries}


def test_a_bridge_forwards_what_its_filter_matches_at_its_qos() -> None:
    plan = make_plan(parse("b.yaml", BRIDGED.encode()))
    assert owed(plan, "one") == {"QoS 0": ("far",), "QoS 1": ("middle",), "QoS 2": ("near",)}
    assert owed(plan, "two") == {"QoS 1": ("middle",), "QoS 2": ("near",)}
    assert owed(plan, "other") == {"QoS 2": ("near",)}
    config = files_at(plan, 0)["b/mosquitto.conf"]
    assert "connection a-1\naddress 10.1.0.2:1884\n" in config.content
    assert "topic m/# out 1\n" in config.content and "cleansession false" in config.content


def test_a_broker_without_bridges_has_the_configuration_of_before() -> None:
    plan = make_plan(parse("c.yaml", CLUSTER.encode()))
    assert "connection " not in files_at(plan, 2)["b/mosquitto.conf"].content


def test_a_cluster_is_one_broker_for_its_clients() -> None:
    plan = make_plan(parse("c.yaml", CLUSTER.encode()))
    assert owed(plan, "sender") == {"QoS 1": ("far", "near")}
    for at, node in enumerate(("r1", "r2")):
        files = files_at(plan, at)
        assert f"-sname rabbit@{node} " in files["b/start.sh"].content
        assert "{cluster_nodes, {['rabbit@r1', 'rabbit@r2'], disc}}" in files["b/rabbitmq.config"].content
        assert "catch Early()" not in files["b/start.erl"].content
        assert files["b/.erlang.cookie"].mode == 0o400
    secrets = {files_at(plan, at)["b/.erlang.cookie"].content for at in (0, 1)}
    assert len(secrets) == 1, "all members have one secret"


def test_a_single_rabbit_starts_as_before() -> None:
    alone = CLUSTER.replace(", cluster: [r1, r2]", "")
    plan = make_plan(parse("c.yaml", alone.encode()))
    files = {path: file.content for path, file in files_at(plan, 0).items()}
    assert "b/.erlang.cookie" not in files and "cluster_nodes" not in files["b/rabbitmq.config"]
    assert "rabbit@localhost" in files["b/start.sh"] and "catch Early()" in files["b/start.erl"]


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("to: b,", "to: a,", "a.software.b.bridges[0].to", "own node"),
        ("to: b,", "to: x,", "a.software.b.bridges[0].to", "x"),
        ("to: b,", "to: near,", "a.software.b.bridges[0].to", "no broker runs"),
        ("topic: m/#, qos: 1", "topic: m/#/x", "a.software.b.bridges[0].topics[0].topic", "#"),
        ("topic: m/#, qos: 1", "topic: 'm #'", "a.software.b.bridges[0].topics[0].topic", ""),
        ("to: b,", "to: b, retry: 1500 ms,", "a.software.b.bridges[0].retry", "whole seconds"),
    ],
)  # fmt: skip
def test_mistakes_in_bridges_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(BRIDGED, old, new, f"nodes.{place}", rule)


@pytest.mark.parametrize(
    ("more", "place", "rule"),
    [
        ("users: {u: p}", "nodes.a.software.b.bridges[0].user", "its `users`"),
        ("tls: lab", "nodes.a.software.b.bridges[0].to", "TLS"),
    ],
)  # fmt: skip
def test_a_bridge_must_fit_the_other_broker(more: str, place: str, rule: str) -> None:
    found = problems(BRIDGED.replace("port: 1884,", f"port: 1884, {more},"))
    assert any(f": {place}: " in one and rule in one for one in found), found


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("cluster: [r1, r2]", "cluster: [r2]", "r1.software.b.cluster", "does not name r1"),
        ("cluster: [r1, r2]", "cluster: [r1, r2, r2]", "r1.software.b.cluster", "twice"),
        ("cluster: [r1, r2]", "cluster: [r1, m]", "r1.software.b.cluster[1]", "has no RabbitMQ"),
        ("cluster: [r1, r2]", "cluster: [r2, r1]", "r1.software.b.cluster[0]", "another list"),
    ],
)  # fmt: skip
def test_mistakes_in_clusters_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(CLUSTER, old, new, f"nodes.{place}", rule)
