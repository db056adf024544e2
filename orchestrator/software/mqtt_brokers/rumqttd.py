"""Defines the broker rumqttd, which is written in Rust."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from ..checking import Checks, Here
from ..mqtt.file import Client, Version
from ..scene import Placed, Scene
from .built import PLACE, BuiltBroker, Start, make_kind

PROGRAM = "rumqttd/bin/rumqttd"
_OTHER = {"3.1.1": "5", "5": "3.1.1"}


class Rumqttd(BuiltBroker):
    """rumqttd, started with a configuration rendered for this node."""

    rendered = frozenset({"version", "users", "max_inflight_messages"})

    broker: Literal["rumqttd"] = Field(description="The broker program.")
    version: Version | None = Field(
        None,
        description="Version of MQTT on `port`, since rumqttd speaks one on each; by default its clients'.",
    )
    users: dict[str, str] = Field(
        default_factory=dict, description="User: password, of the only users that the broker admits."
    )
    max_inflight_messages: int = Field(
        100, ge=1, le=65535, description="Limit on unacknowledged messages per client."
    )

    def missing(self) -> Mapping[str, str]:
        if self.version is None:
            return {}
        other = _OTHER[self.version]
        return {f"version {other}": f"its port speaks {self.version}; `version: {other}` there changes that"}

    def admitted(self) -> dict[str, str] | None:
        return self.users or None


def _spoken(models: Iterable[object], node: str, port: int) -> Iterator[Version]:
    """Yields the MQTT version of each client of the broker, of those `models` that are MQTT clients."""
    for model in models:
        if isinstance(model, Client) and model.mqtt.broker == node and model.mqtt.port in (None, port):
            yield model.mqtt.version


def _check(report: Checks, here: Here, broker: Rumqttd) -> None:
    """Reports clients of both versions on the broker's port."""
    if broker.version is not None or broker.config is not None:
        return
    models = [model for node in report.everyone for model in report.programs(node).values()]
    for node in here.nodes:
        if len(set(_spoken(models, node, broker.port))) > 1:
            rule = "rumqttd speaks one version of MQTT on a port, and the clients here speak both"
            remedy = "write a second `broker: rumqttd` with another `port:`, and that port at the clients"
            report.add((*here.path, "version"), None, rule, remedy)
            return


def _start(scene: Scene, placed: Placed) -> Start:
    broker: Rumqttd = placed.model
    models = (other.model for several in scene.placed.values() for other in several)
    version = broker.version or next(_spoken(models, placed.node, broker.port), "5")
    section = f"{'v5' if version == '5' else 'v4'}.1"
    lines = [
        "id = 0",
        "[router]",
        "id = 0",
        "max_connections = 10010",
        "max_outgoing_packet_count = 200",
        "max_segment_size = 104857600",
        "max_segment_count = 10",
        f"[{section}]",
        'name = "lab"',
        f'listen = "0.0.0.0:{broker.port}"',
        "next_connection_delay_ms = 1",
        f"[{section}.connections]",
        "connection_timeout_ms = 60000",
        "max_payload_size = 1048576",
        f"max_inflight_count = {broker.max_inflight_messages}",
        "dynamic_filters = true",
    ]
    if broker.users:
        lines.append(f"[{section}.connections.auth]")
        lines += [f"{json.dumps(name)} = {json.dumps(word)}" for name, word in broker.users.items()]
    path = f"{placed.name}/rumqttd.toml"
    return Start((f"{PLACE}/{PROGRAM}", "--quiet", "--config", path), path, "\n".join(lines) + "\n")


KIND = make_kind(
    Rumqttd, "rumqttd", "rumqttd", _start, PROGRAM, 30_000_000,
    own_check=_check,
)  # fmt: skip
