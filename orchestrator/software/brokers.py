"""Defines the keys, services, checks and costs that brokers and their clients have in common."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from contract.plan import Flow

from ..language.dscp import Pcp
from ..language.scalars import Base, Duration, Name, Port, Positive, Size
from ..language.source import Path
from .checking import Checks, Here, joined
from .kind import TCP_HEADERS_BYTES, Costs
from .program_texts import check_env, check_files, check_text
from .scene import Scene
from .sending import expected_messages
from .tls.file import Tls

_PROGRAM = re.compile(r"/[^\0]*[^/\0]|[^/\0\s]+")
# Keys of every client, which stand below its kind's own keys.
BrokerNode = Annotated[Name, Field(description="Node that runs the broker.")]
BrokerPort = Annotated[
    Port | None, Field(description="The broker's port; by default that of the broker software there.")
]
Reconnect = Annotated[
    Duration, Field(description="Wait before a new attempt to connect; 0 s: never reconnect.")
]
ClientPcp = Annotated[
    Pcp | None,
    Field(
        description=(
            "Priority (IEEE 802.1Q, 0 to 6) in the tags of the client's frames; needs a `vlan` of its node."
        )
    ),
]
PayloadSize = Annotated[Size, Field(description="Exact length of the payload.")]
Queue = Annotated[
    Positive,
    Field(le=2**31 - 1, description="Messages that may wait behind a full window or a lost connection."),
]


@dataclass(frozen=True, slots=True)
class Service:
    """A protocol that a broker speaks: its port, and the features that it lacks, each with the reason."""

    port: int
    # feature, as the protocol's kind calls it -> the reason
    lacks: Mapping[str, str] = field(default_factory=dict)
    users: dict[str, str] | None = None  # user -> password; None if the broker may admit others
    tls: Tls | None = None
    websocket: bool | None = None  # whether the port uses WebSocket; None if the broker cannot
    own_config: bool = False  # whether the user gives a configuration, which may use other certificates


@dataclass(frozen=True, slots=True)
class Forward:
    """Messages that a broker forwards to another one: the other's node, its port (None: the port of the
    broker there), a filter of topics, and the highest level of guarantee on the way.
    """

    to: str
    port: int | None
    topic: str
    level: int


class Serving(Base):
    """The base of all models of broker software in a topology file."""

    config: str | None = Field(
        None,
        min_length=1,
        description="The broker's whole configuration (a template), in place of the rendered one.",
    )
    program: str | None = Field(
        None,
        min_length=1,
        description="The broker's program: a name, or the absolute path of your own build.",
    )
    files: dict[str, str] = Field(
        default_factory=dict,
        description="Path: content (a template); relative paths are below the node's own directory.",
    )
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables (templates).")

    @abstractmethod
    def services(self) -> Mapping[str, Service]:
        """Returns the broker's services by protocol, under the names that the reducer uses."""

    def forwards(self, node: str) -> tuple[Forward, ...]:
        """Returns what the broker, on this node, forwards to other brokers."""
        return ()


def check_own_setup(report: Checks, path: Path, broker: Serving, rendered: Iterable[str]) -> None:
    """Reports a broker's invalid environment variables, files and program, a `config` that is no template,
    and keys of the rendered configuration (`rendered`) beside `config`, which replaces it.
    """
    check_env(report, (*path, "env"), broker.env)
    check_files(report, (*path, "files"), broker.files)
    if broker.program is not None and not _PROGRAM.fullmatch(broker.program):
        rule = "is neither a program's name nor an absolute path"
        report.add((*path, "program"), broker.program, rule, "write for example /opt/broker/bin/broker")
    if broker.config is None:
        return
    check_text(report, (*path, "config"), broker.config)
    for key in sorted(set(rendered) & broker.model_fields_set):
        rule = "is of the rendered configuration, which `config` replaces"
        report.add((*path, key), None, rule, "write it into `config`, or leave `config` out")


def offered(models: Iterable[object], protocol: str) -> list[Service]:
    """Returns the services that speak the protocol, of those `models` that are brokers."""
    found = (model.services().get(protocol) for model in models if isinstance(model, Serving))
    return [service for service in found if service is not None]


def services_at(scene: Scene, node: str, protocol: str) -> list[Service]:
    """Returns the services that speak the protocol, of the brokers on one node of the plan."""
    found: list[Service] | None = scene.services.get((node, protocol))
    if found is None:
        found = offered((placed.model for placed in scene.placed[node]), protocol)
        scene.services[node, protocol] = found
    return found


def check_broker(
    report: Checks, here: Here, path: Path, node: str, port: int | None, protocol: str, example: str
) -> Service | None:
    """Returns the broker service of `node` that a client names. Reports an unknown or unreachable node and,
    without `port`, a node with no broker or several brokers of the protocol.

    `path` is the path of the key that names the node; `example` is a line of a file with a broker of the
    protocol. Returns None for an unknown node, or if no broker there has the protocol and port.
    """
    if not report.node(path, node):
        return None
    found = offered(report.programs(node).values(), protocol)
    if not found and port is None:
        rule = f"no broker runs on this node that speaks {protocol}, so its port is not known"
        report.add(path, node, rule, f"write `software: {example}` there, or `port:` here")
    if port is None and len(found) > 1:
        report.add(path, node, "more than one broker runs on this node", "write `port:`")
    joined(report, here, path, node, node)
    return next((service for service in found if port in (None, service.port)), None)


def check_features(
    report: Checks, service: Service | None, node: str, used: Iterable[tuple[Path, str, str]]
) -> None:
    """Reports each feature that a client uses and its broker lacks; `used` has (place, feature, remedy) of
    each. Reports nothing if `service` is None.
    """
    for path, feature, remedy in used:
        if service is not None and (why := service.lacks.get(feature)):
            report.add(path, feature, f"the broker of {node} cannot do it: {why}", remedy)


def forwards_at(scene: Scene, node: str, port: int, protocol: str) -> tuple[Forward, ...]:
    """Returns what the broker with this port on a node forwards to others."""
    models = [placed.model for placed in scene.placed[node] if isinstance(placed.model, Serving)]
    for model in models:
        service = model.services().get(protocol)
        if service is not None and service.port == port:
            return model.forwards(node)
    return ()


def port_at(scene: Scene, node: str, port: int | None, protocol: str) -> int:
    """Returns `port`, or if it is None the port of the node's first broker of this protocol."""
    return port if port is not None else services_at(scene, node, protocol)[0].port


def name_at(scene: Scene, node: str, port: int | None, protocol: str) -> str:
    """Returns a broker's name in sets of receivers: its node's name, with the port if the node has several
    brokers of this protocol.
    """
    several = len(services_at(scene, node, protocol)) > 1
    return f"{node}:{port_at(scene, node, port, protocol)}" if several else node


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes and packets of a client above TCP, without payloads and names."""

    connection: tuple[int, int]  # packets of the session as a whole, and bytes of each
    message_bytes: int
    answers: int  # packets for each message on one leg, including acknowledgements of TCP
    answer_bytes: int


def client_costs(memory_bytes: int, flows: Sequence[Flow], traffic: Traffic, at: str = "") -> Costs:
    """Returns an upper estimate of a client's costs. The packets are counted at a capture point that sees
    each message twice: on the way to the broker and on the way from it. `memory_bytes` is the memory that the
    broker needs for the client; `at` tells brokers apart, each of which has open files of its own.
    """
    connection_packets, connection_bytes = traffic.connection
    packets: list[tuple[float, int]] = [(connection_packets, TCP_HEADERS_BYTES + connection_bytes)]
    for flow in flows:
        messages = 2 * expected_messages(flow)
        length = TCP_HEADERS_BYTES + traffic.message_bytes + len(flow.topic) + flow.payload.bytes
        packets.append((messages, length))
        packets.append((messages * traffic.answers, TCP_HEADERS_BYTES + traffic.answer_bytes))
        if flow.reply is not None:
            length = TCP_HEADERS_BYTES + traffic.message_bytes + len(flow.topic) + flow.reply.bytes
            packets.append((messages, length))
            packets.append((messages * traffic.answers, TCP_HEADERS_BYTES + traffic.answer_bytes))
    return Costs(
        memory_bytes=memory_bytes, files_at={f"broker {at}".rstrip(): 1}, peers=1, packets=tuple(packets)
    )
