"""The plan's software: broker configurations rendered, clients put into a schedule, commands filled in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..language.templates import TemplateFaultError, render
from ..model import File, Mqtt, Probe, Process, Publish, Schedule, Software, Subscribe
from ..topology.expansion import Expansion
from ..topology.frames import Frames as FileFrames
from ..topology.phases import Phases, clients, interval_ns
from ..topology.software import Broker, Client, Command, MqttOptions
from ..topology.topics import fill, matches
from .frames import plan_frames
from .naming import derived_seed
from .network import Network

LONGEST_WORD = 131_071  # MAX_ARG_STRLEN of the kernel's include/uapi/linux/binfmts.h, without the zero byte


@dataclass(frozen=True)
class Scene:
    """All that the software of one node may depend on."""

    lab: str
    seed: int
    names: Expansion
    network: Network
    phases: Phases
    parameters: dict[str, Any]
    connects: dict[tuple[str, str], int]  # (node, software) of each MQTT client -> connect offset
    topics: dict[str, int]  # exact subscribed topic -> latest connect offset of its subscribers
    patterns: dict[str, int]  # the same for topic filters with wildcards


def make_scene(
    lab: str,
    seed: int,
    model: Any,
    names: Expansion,
    network: Network,
    lengths: Phases,
    parameters: dict[str, Any],
) -> Scene:
    """The scene, with every client's place in the order of connecting."""
    order = clients(names)
    gap = interval_ns(model, len(order))
    connects = {client: place * gap for place, client in enumerate(order)}
    topics: dict[str, int] = {}
    patterns: dict[str, int] = {}
    for (node, name), at in connects.items():
        software = names.nodes[node].software[name]
        assert isinstance(software, Client)
        for subscription in software.mqtt.subscribe:
            topic = _topic(names, node, subscription.topic)
            table = patterns if any(sign in topic for sign in "+#") else topics
            table[topic] = max(table.get(topic, 0), at)
    return Scene(lab, seed, names, network, lengths, parameters, connects, topics, patterns)


def plan_software(scene: Scene, node: str) -> tuple[Software, ...]:
    """The software of one node, in the file's order."""
    found = []
    for name, software in scene.names.nodes[node].software.items():
        if isinstance(software, Client):
            found.append(Software(name, "client", mqtt=_mqtt(scene, node, name, software.mqtt)))
        elif isinstance(software, Broker):
            found.append(Software(name, "broker", process=_mosquitto(node, name, software)))
        elif isinstance(software, FileFrames):
            found.append(Software(name, "utility", frames=plan_frames(scene.network, node, software.frames)))
        else:
            found.append(Software(name, software.role, process=_process(scene, node, software)))
    return tuple(found)


@cache
def _configuration() -> Any:
    import jinja2

    text = (Path(__file__).parent / "mosquitto.conf.j2").read_text()
    return jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True).from_string(text)


def _mosquitto(node: str, name: str, broker: Broker) -> Process:
    sys_interval_s = broker.sys_interval // 10**9
    content = _configuration().render(node=node, broker=broker, sys_interval_s=sys_interval_s, directory=name)
    path = f"{name}/mosquitto.conf"
    return Process(
        argv=("mosquitto", "-c", path),
        files=(File(path, content),),
        ready=Probe(tcp_port=broker.port, deadline_ns=broker.ready_within),
        restart=broker.restart,
        stop_signal=broker.stop_signal,
    )


def _process(scene: Scene, node: str, command: Command) -> Process:
    values = _values(scene, node)
    ready = command.ready
    probe = Probe()
    if ready is not None:
        probe = Probe(ready.tcp, ready.log, tuple(ready.command) if ready.command else None, ready.within)
    return Process(
        argv=tuple(_word(word, values) for word in command.command),
        env={key: _word(text, values) for key, text in command.env.items()},
        files=tuple(File(path, render(text, values)) for path, text in command.files.items()),
        ready=probe,
        restart=command.restart,
        expect=command.expect,
        stop_signal=command.stop_signal,
        start=command.start,
    )


def _word(text: str, values: dict[str, Any]) -> str:
    """An argument or the value of a variable, as the kernel's execve takes them."""
    word = render(text, values)
    if len(word.encode()) > LONGEST_WORD or "\0" in word:
        raise TemplateFaultError(
            f"an argument or variable has at most {LONGEST_WORD} bytes, none of them zero; use `files`"
        )
    return word


def _values(scene: Scene, node: str) -> dict[str, Any]:
    group = scene.names.group_of[node]
    return {
        "lab": scene.lab,
        "node": node,
        "group": group,
        "index": scene.names.index_of[node],
        "count": len(scene.names.groups.get(group, (node,))),
        "address": scene.network.address(node),
        "addresses": {name: cards[0].address for name, cards in scene.network.interfaces.items()},
        "parameters": scene.parameters,
    }


def _topic(names: Expansion, node: str, topic: str) -> str:
    group = names.group_of[node]
    count = len(names.groups.get(group, (node,)))
    return fill(topic, node=node, group=group, index=names.index_of[node], count=count)


def _mqtt(scene: Scene, node: str, name: str, mqtt: MqttOptions) -> Mqtt:
    at = scene.connects[node, name]
    alone = sum(isinstance(s, Client) for s in scene.names.nodes[node].software.values()) == 1
    return Mqtt(
        broker=scene.network.address_of(mqtt.broker, node),
        port=mqtt.port or _broker_port(scene, mqtt.broker),
        version=mqtt.version,
        client_id=node if alone else f"{node}-{name}",
        connect_ns=at,
        disconnect_ns=scene.phases.end_ns,
        keepalive_s=mqtt.keepalive // 10**9,
        clean_session=mqtt.clean_session,
        publish=_publish(scene, node, name, mqtt) if mqtt.publish else None,
        subscribe=tuple(Subscribe(_topic(scene.names, node, s.topic), s.qos) for s in mqtt.subscribe),
        reconnect_ns=mqtt.reconnect,
    )


def _broker_port(scene: Scene, broker: str) -> int:
    software = scene.names.nodes[broker].software.values()
    return next(s.port for s in software if isinstance(s, Broker))


def _publish(scene: Scene, node: str, name: str, mqtt: MqttOptions) -> Publish:
    wanted = mqtt.publish
    assert wanted is not None
    topic = _topic(scene.names, node, wanted.topic)
    heard = max(
        [
            scene.topics.get(topic, 0),
            *(at for pattern, at in scene.patterns.items() if matches(pattern, topic)),
        ]
    )
    stop = scene.phases.ramp_ns + scene.phases.hold_ns
    return Publish(
        topic=topic,
        qos=wanted.qos,
        payload=wanted.payload,
        payload_bytes=wanted.payload_size,
        schedule=_schedule(scene, node, name, mqtt),
        start_ns=min(max(scene.connects[node, name], heard) + wanted.settle, stop),
        stop_ns=stop,
        inflight=wanted.inflight,
        queue=wanted.queue,
    )


def _schedule(scene: Scene, node: str, name: str, mqtt: MqttOptions) -> Schedule:
    assert mqtt.publish is not None
    rate, arrivals = mqtt.publish.rate, mqtt.publish.arrivals
    group = scene.names.group_of[node]
    if mqtt.publish.rate_of == "client":
        return Schedule("own", rate, derived_seed(scene.seed, "schedule", node, name), arrivals=arrivals)
    count = len(scene.names.groups.get(group, (node,)))
    seed = derived_seed(scene.seed, "schedule", group, name)
    return Schedule("shared", rate, seed, scene.names.index_of[node] - 1, count, arrivals)
