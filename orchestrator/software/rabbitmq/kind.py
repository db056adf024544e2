"""Defines the registry entry of RabbitMQ: its checks, its files and program, and its costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.plan import File, Flow, Probe, Process, Program, Software

from ...language.templates import render
from ..brokers import check_own_setup
from ..checking import Checks, Here, joined
from ..kind import Bind, Costs, Kind, Planned
from ..mqtt.file import PROTOCOL as MQTT
from ..program_texts import filled_env, filled_files, filling
from ..programs import template
from ..scene import Placed, Scene
from .file import Rabbit

# PSS with one scheduler: 82 to 94 MB idle, more with connections (host kernel, RabbitMQ 3.10.8, Erlang 25.2).
MEMORY_BYTES = 111_000_000
READY = "vnet: answers"  # start.erl prints this line
HERE = Path(__file__).parent
PLUGINS = {"mqtt": "rabbitmq_mqtt", "amqp1.0": "rabbitmq_amqp1_0"}
LONGEST_HEARTBEAT_S = 65535  # connection.tune of AMQP 0-9-1 has two bytes for the heartbeat
# `options` is such a key, too: its terms stand inside the configuration and cannot follow a file.
_RENDERED = frozenset({"mqtt_prefetch", "heartbeat", "channel_max", "nodelay", "options", "cluster"})
_SETTING = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-zA-Z0-9_]*")
SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # the program is not in a directory of the PATH


def _check(report: Checks, here: Here, broker: Rabbit) -> None:
    path = here.path
    check_own_setup(report, path, broker, _RENDERED)
    if broker.program is not None and not broker.program.startswith("/"):
        rule = "is started by its absolute path"
        report.add((*path, "program"), broker.program, rule, f"write for example {SERVER}")
    image = report.image(here.nodes[0])
    if image is not None and (image.startswith("builtin") or image == "debian"):
        rule = f"the image {image} has no RabbitMQ"
        report.add(path, None, rule, "write `kind: light` at the node, or an image of your own that has it")
    seconds, rest = divmod(broker.heartbeat, 10**9)
    if rest or seconds > LONGEST_HEARTBEAT_S:
        rule = f"must be whole seconds, at most {LONGEST_HEARTBEAT_S}"
        report.add((*path, "heartbeat"), None, rule, 'write for example "10 s"')
    if len(set(broker.plugins)) < len(broker.plugins):
        report.add((*path, "plugins"), None, "names a plugin twice", "write each once")
    _cluster(report, here, broker)
    for key in ("mqtt_port", "mqtt_prefetch"):
        if "mqtt" not in broker.plugins and key in broker.model_fields_set:
            report.add((*path, key), None, "is of a plugin that is not on", "write `plugins: [mqtt]`")
    if broker.port == broker.mqtt_port and MQTT in broker.services():
        report.add((*path, "mqtt_port"), broker.mqtt_port, "is `port` too", "write another")
    for key, value in broker.options.items():
        if not _SETTING.fullmatch(key) or not str(value).isprintable():
            rule = "is not a setting of an Erlang application"
            report.add((*path, "options", key), f"{key}: {value}", rule, "write `rabbit.KEY: TERM`, one line")


def _cluster(report: Checks, here: Here, broker: Rabbit) -> None:
    """Reports a cluster that lacks this node or names a node twice, and nodes of it that lack RabbitMQ or
    name another cluster.
    """
    path, names = (*here.path, "cluster"), broker.cluster
    if not names:
        return
    if len(set(names)) < len(names):
        report.add(path, None, "names a node twice", "write each once")
    if lacking := [node for node in here.nodes if node not in names]:
        report.add(
            path, None, f"does not name {lacking[0]}, which is of it", "write all nodes of the cluster"
        )
    for index, name in enumerate(names):
        if not report.node((*path, index), name):
            continue
        joined(report, here, (*path, index), name, name)
        others = [one for one in report.programs(name).values() if isinstance(one, Rabbit)]
        if not others:
            report.add((*path, index), name, "has no RabbitMQ", "write `broker: rabbitmq` there")
        elif all(one.cluster != names for one in others):
            rule = "has another list of the cluster's nodes"
            report.add((*path, index), name, rule, "write the same `cluster` at each")


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        broker: Rabbit = placed.model
        ports: dict[str, tuple[int, ...]] = {
            name: (service.port,) for name, service in broker.services().items()
        }
        with filling(placed.node):
            process = _process(scene, placed, broker)
        yield Planned(Software(placed.name, "broker", KIND.name, process, ports=ports))


def _process(scene: Scene, placed: Placed, broker: Rabbit) -> Process:
    values, name = scene.values(placed.node), placed.name
    ports = ", ".join(f"{{{protocol}, {service.port}}}" for protocol, service in broker.services().items())
    files = {
        "rabbitmq.config": _configuration(values, broker),
        "plugins": f"[{', '.join(PLUGINS[plugin] for plugin in broker.plugins)}].\n",
        "ports": f"[{ports}].\n",
        "start.erl": (HERE / "start.erl").read_text(),
        "start.sh": (HERE / "start.sh").read_text().replace(SERVER, broker.program or SERVER),
    }
    if broker.cluster:
        files |= _joining(placed.node, files)
    own = tuple(File(f"{name}/{path}", content) for path, content in files.items())
    if broker.cluster:
        secret = f"{scene.seed_for('cluster', *broker.cluster):020d}"
        own = (*own, File(f"{name}/.erlang.cookie", secret, 0o400))
    return Process(
        argv=("sh", f"{name}/start.sh"),
        env=filled_env(broker.env, values) | {"DIR": name, "LEVEL": broker.log_level},
        files=(*own, *filled_files(broker.files, values)),
        ready=Probe(log=READY, deadline_ns=broker.ready_within),
        restart=broker.restart,
        stop_signal=broker.stop_signal,
    )


def _member(node: str) -> str:
    """Returns the name of a node's Erlang machine in a cluster."""
    return f"rabbit@{node}"


def _joining(node: str, files: Mapping[str, str]) -> dict[str, str]:
    """Returns the files that start a member of a cluster under a name by which the other members find it, and
    without a Raft group of its own.
    """
    return {
        "start.sh": files["start.sh"].replace("rabbit@localhost", _member(node)),
        "start.erl": files["start.erl"].replace("catch Early()", "in_a_cluster"),
    }


def _configuration(values: dict[str, Any], broker: Rabbit) -> str:
    """Returns the broker's configuration file in Erlang terms: the user's own `config`, else the rendered
    one.
    """
    if broker.config is not None:
        return render(broker.config, values)
    options: dict[str, dict[str, str]] = {}
    for setting, value in broker.options.items():
        application, key = setting.split(".")
        options.setdefault(application, {})[key] = (
            str(value).lower() if isinstance(value, bool) else str(value)
        )
    heartbeat_s = broker.heartbeat // 10**9
    configuration = template(HERE / "rabbitmq.config.j2")
    text: str = configuration.render(
        node=values["node"],
        broker=broker,
        heartbeat_s=heartbeat_s,
        options=options,
        members=[f"'{_member(node)}'" for node in broker.cluster],
    )
    return text


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    spoken = ", ".join(f"{protocol} on port {ports[0]}" for protocol, ports in software.ports.items())
    return f"broker, {spoken}"


def _costs(_software: Software, _flows: Sequence[Flow]) -> Costs:
    return Costs(memory_bytes=MEMORY_BYTES)


def _binds(broker: Rabbit) -> tuple[Bind, ...]:
    mqtt = (Bind("tcp", broker.mqtt_port, ("mqtt_port",)),) if MQTT in broker.services() else ()
    return (Bind("tcp", broker.port, ("port",)), *mqtt)


KIND = Kind(
    name="rabbitmq",
    key="broker",
    model=Rabbit,
    what="a broker",
    example="broker: rabbitmq",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    endpoint=lambda _model: False,
    binds=_binds,
    programs=(
        Program(
            SERVER,
            "rabbitmq-server",
            ("dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"),
            "topologies with the broker rabbitmq fail in plan",
        ),
    ),
    titles={"Rabbit": "software.NAME: the broker RabbitMQ"},
)
