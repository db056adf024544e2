"""Defines the broker aedes, a library of Node.js, with the program that serves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import Field

from contract.plan import File

from ..scene import Placed, Scene
from .built import ONLY_OLD, PLACE, BuiltBroker, Start, make_kind

HERE = Path(__file__).parent
LIBRARY = "aedes/node_modules/aedes/aedes.js"


class Aedes(BuiltBroker):
    """aedes, served on one port by a program of vNET."""

    lacks = ONLY_OLD
    rendered = frozenset({"users", "max_queued_messages"})

    broker: Literal["aedes"] = Field(description="The broker program.")
    users: dict[str, str] = Field(
        default_factory=dict, description="User: password, of the only users that the broker admits."
    )
    max_queued_messages: int = Field(
        42,
        ge=1,
        le=65535,
        description="Messages of one client that aedes handles at once (its `queueLimit`).",
    )

    def admitted(self) -> dict[str, str] | None:
        return self.users or None


def _start(_scene: Scene, placed: Placed) -> Start:
    directory, broker = placed.name, placed.model
    config = {
        "port": broker.port,
        "users": broker.users,
        "options": {"queueLimit": broker.max_queued_messages},
    }
    path, served = f"{directory}/aedes.json", f"{directory}/aedes.mjs"
    program = File(served, (HERE / "aedes.mjs").read_text())
    argv = ("node", "--single-threaded", served, path, f"{PLACE}/aedes/node_modules")
    return Start(argv, path, json.dumps(config, indent=1) + "\n", files=(program,))


KIND = make_kind(Aedes, "aedes", "aedes", _start, LIBRARY, 70_000_000, ("node", "nodejs"))
