"""Lists the shipped topologies and campaigns, and those of them that have many runs."""

from __future__ import annotations

from pathlib import Path

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
MANY_RUNS = (
    "atlas",
    "atlas-amqp",
    "atlas-broker",
    "interaction-models",
    "middleware-2017",
    "middleware-reduced",
    "mqtt-conformance",
    "mqtt-conformance-real",
    "mqtt-qos-campaign",
    "mqtt-qos-short",
)
