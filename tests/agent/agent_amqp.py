"""Provides a RabbitMQ broker and AMQP clients for a launcher's nodes, for the agent's tests and their
benchmark.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

BROKER = "10.77.0.1"
FILE = b"""\
name: broker
segments: {lan: {subnet: 10.77.0.0/16}}
nodes: {b: {segment: lan, software: {rabbit: {broker: rabbitmq, plugins: []}}}}
run: {hold: 1 s}
"""


def rabbit() -> dict[str, Any]:
    """Returns the planned software of a node that runs RabbitMQ, as a dictionary."""
    return asdict(make_plan(parse("broker.yaml", FILE)).nodes[0].software[0])


def spec(**side: dict[str, Any]) -> dict[str, Any]:
    login = {"vhost": "/", "user": "guest", "password": "guest", "heartbeat_s": 4, "reconnect_ns": 0}
    return {"broker": BROKER, "port": 5672, **login, **side}


def exchange(name: str) -> dict[str, Any]:
    return {"name": name, "type": "topic", "durable": True}


PUBLISH = {"exchange": exchange("said"), "key": "meter.7", "persistent": True, "confirms": True,
           "inflight": 50, "queue": 1000}  # fmt: skip
CONSUME = {"exchange": exchange("heard"), "keys": ["meter.*"], "queue": "kept", "durable": True,
           "prefetch": 5, "acknowledge": True}  # fmt: skip
