"""Tests RabbitMQ in the plan: its configuration, the ports of its protocols, and MQTT features that its
plugin lacks.
"""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from contract.plan import Plan, Process
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

BROKER = "rabbit: {broker: rabbitmq}"
SENDER = "mqtt: {broker: server, publish: {topic: m/1, qos: 1, rate: 1 /s}}"
READER = 'mqtt: {broker: server, version: "3.1.1", subscribe: [{topic: "m/#", qos: 1}]}'
FILE = f"""\
name: rabbit
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  server: {{segment: lan, software: {{{BROKER}}}}}
  reader: {{segment: lan, software: {{r: {{{READER}}}}}}}
  sender: {{segment: lan, software: {{s: {{{SENDER}}}}}}}
run: {{hold: 10 s}}
"""
PLACE, CLIENT = "nodes.server.software.rabbit", "nodes.reader.software.r.mqtt"


def planned(broker: str = BROKER) -> Plan:
    return make_plan(parse("rabbit.yaml", FILE.replace(BROKER, broker).encode()))


def process(broker: str) -> tuple[Process, dict[str, str]]:
    found = planned(broker).nodes[0].software[0].process
    assert found is not None
    return found, {file.path.removeprefix("rabbit/"): file.content for file in found.files}


def test_the_mqtt_client_finds_the_plugins_port() -> None:
    plan = planned("rabbit: {broker: rabbitmq, mqtt_port: 1884}")
    broker, reader = (plan.nodes[place].software[0] for place in (0, 1))
    assert broker.ports == {"amqp": (5672,), "mqtt": (1884,)}
    assert reader.spec["port"] == 1884 and reader.ports == {"mqtt": (1884,)}
    assert [plan.receivers[d.receivers] for d in plan.flows[0].deliveries] == [("reader",)]
    assert plan.flows[0].deliveries[0].guarantee.name == "QoS 1"


def test_its_configuration_holds_what_the_file_says() -> None:
    found, files = process(
        "rabbit: {broker: rabbitmq, port: 5673, heartbeat: 5 s, nodelay: false, mqtt_prefetch: 3, options: "
        "{rabbit.vm_memory_high_watermark: '{absolute, 50000000}', rabbitmq_mqtt.exchange: '<<\"m\">>', "
        "ra.segment_max_entries: 4096, ra.x: true}}"
    )
    text = "".join(line.strip() for line in files["rabbitmq.config"].splitlines()[1:])
    assert text == (
        "[{rabbit, [{tcp_listeners, [5673]},{tcp_listen_options, [{backlog, 1024}, {nodelay, false}]},"
        "{loopback_users, []},{heartbeat, 5},{channel_max, 2047},"
        "{vm_memory_high_watermark, {absolute, 50000000}}]},"
        "{rabbitmq_mqtt, [{tcp_listeners, [1883]},{tcp_listen_options, [{backlog, 1024}, {nodelay, false}]},"
        '{prefetch, 3},{exchange, <<"m">>}]},{ra, [{segment_max_entries, 4096},{x, true}]}].'
    )
    assert files["ports"] == "[{amqp, 5673}, {mqtt, 1883}].\n" and files["plugins"] == "[rabbitmq_mqtt].\n"
    assert found.ready.log == "vnet: answers" and found.ready.log in files["start.erl"]
    assert process('rabbit: {broker: rabbitmq, plugins: [mqtt, "amqp1.0"]}')[1]["plugins"] == (
        "[rabbitmq_mqtt, rabbitmq_amqp1_0].\n"
    )


def test_an_own_set_up_replaces_ours() -> None:
    found, files = process(
        "rabbit: {broker: rabbitmq, config: '[]. % {{ node }}', program: /opt/r/sbin/server, "
        "env: {A: b, DIR: x}}"
    )
    assert files["rabbitmq.config"] == "[]. % server"
    assert "server=/opt/r/sbin/server " in files["start.sh"]
    assert found.env == {"A": "b", "DIR": "rabbit", "LEVEL": "warning"}


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ('version: "3.1.1"', "version: 5", f"{CLIENT}.version", "RabbitMQ's MQTT plugin speaks 3.1.1 only"),
        ("qos: 1}]", "qos: 2}]", f"{CLIENT}.subscribe[0].qos", "RabbitMQ's MQTT plugin has QoS 0 and 1 only"),
        ("m/1, qos: 1", "m/1, qos: 2", "nodes.sender.software.s.mqtt.publish.qos", "QoS 0 and 1 only"),
        ('"m/#"', '"$share/g/m"', f"{CLIENT}.subscribe[0].topic", "the broker of server cannot do it"),
        (BROKER, "rabbit: {broker: rabbitmq, plugins: [stomp]}", f"{PLACE}.plugins[0]", "mqtt"),
        (BROKER, "rabbit: {broker: rabbitmq, plugins: [mqtt, mqtt]}", f"{PLACE}.plugins", "a plugin twice"),
        (BROKER, "rabbit: {broker: rabbitmq, persistence: true}", f"{PLACE}.persistence", ""),
        (BROKER, "rabbit: {broker: rabbitmq, heartbeat: 1500 ms}", f"{PLACE}.heartbeat", "whole seconds"),
        (BROKER, "rabbit: {broker: rabbitmq, mqtt_port: 5672}", f"{PLACE}.mqtt_port", "is `port` too"),
        (BROKER, "rabbit: {broker: rabbitmq, program: rabbit}", f"{PLACE}.program", "by its absolute path"),
        (BROKER, "rabbit: {broker: rabbitmq, config: '[].', nodelay: true}", f"{PLACE}.nodelay", "replaces"),
        (BROKER, "rabbit: {broker: rabbitmq, options: {beat: 5}}", f"{PLACE}.options.beat", "not a setting"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


def test_settings_of_a_plugin_need_the_plugin() -> None:
    wrong = "rabbit: {broker: rabbitmq, plugins: [], mqtt_port: 1884}"
    assert any(
        "is of a plugin that is not on" in problem for problem in problems(FILE.replace(BROKER, wrong))
    )


@pytest.mark.parametrize("image", ["builtin", "debian"])
def test_our_images_have_no_rabbitmq(image: str) -> None:
    wrong = FILE.replace("server: {segment: lan,", f"server: {{segment: lan, kind: vm, image: {image},")
    assert any(f"the image {image} has no RabbitMQ" in problem for problem in problems(wrong))


def test_a_client_needs_the_plugin_that_speaks_to_it() -> None:
    found = problems(FILE.replace(BROKER, "rabbit: {broker: rabbitmq, plugins: []}"))
    assert [problem.split(": ")[1] for problem in found] == [
        f"{CLIENT}.broker",
        "nodes.sender.software.s.mqtt.broker",
    ]
    assert all("no broker runs on this node that speaks mqtt" in problem for problem in found)
