"""Defines the broker moquette, which is written in Java."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..scene import Placed, Scene
from .built import ONLY_OLD, PLACE, BuiltBroker, Start, make_kind

JARS = "moquette/jars"


class Moquette(BuiltBroker):
    """moquette, started with a configuration rendered for this node."""

    lacks = ONLY_OLD  # version 0.17 answers a CONNECT of MQTT 5 with code 1, unacceptable protocol version
    rendered = frozenset({"persistence"})

    broker: Literal["moquette"] = Field(description="The broker program.")
    persistence: bool = Field(False, description="Keep sessions and queued messages across restarts.")


def _start(_scene: Scene, placed: Placed) -> Start:
    directory, broker = placed.name, placed.model
    lines = [
        f"port {broker.port}",
        "host 0.0.0.0",
        "allow_anonymous true",
        "telemetry_enabled false",
        f"persistence_enabled {str(broker.persistence).lower()}",
        f"data_path {directory}/data/",
        "netty.mqtt.message_size 1048576",
    ]
    argv = (
        "java",
        "-Xmx96m",
        "-XX:+UseSerialGC",
        f"-Dmoquette.path={directory}",
        "-cp",
        f"{PLACE}/{JARS}/*",
        "io.moquette.broker.Server",
    )
    return Start(argv, f"{directory}/config/moquette.conf", "\n".join(lines) + "\n")


KIND = make_kind(
    Moquette,
    "moquette",
    "moquette",
    _start,
    f"{JARS}/moquette-broker-0.17.jar",
    200_000_000,
    ("java", "openjdk-17-jre-headless"),
    real_time="a Java machine waits and computes in real time there",
)
