"""Defines the broker amqtt, which is written in Python."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from ..scene import Placed, Scene
from .built import ONLY_OLD, PLACE, BuiltBroker, Start, make_kind

SITE = "amqtt/site"


class Amqtt(BuiltBroker):
    """amqtt, started with a configuration rendered for this node."""

    lacks = ONLY_OLD

    broker: Literal["amqtt"] = Field(description="The broker program.")


def _start(_scene: Scene, placed: Placed) -> Start:
    directory, broker = placed.name, placed.model
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"0.0.0.0:{broker.port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    path = f"{directory}/amqtt.yaml"
    argv = ("/usr/bin/python3", "-m", "amqtt.scripts.broker_script", "-c", path)
    # JSON is YAML, too.
    return Start(argv, path, json.dumps(config, indent=1) + "\n", {"PYTHONPATH": f"{PLACE}/{SITE}"})


KIND = make_kind(
    Amqtt, "amqtt", "amqtt", _start, f"{SITE}/amqtt/broker.py", 60_000_000,
)  # fmt: skip
