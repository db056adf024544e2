"""Defines the broker mochi-mqtt, which is written in Go."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from ..scene import Placed, Scene
from .built import PLACE, BuiltBroker, Start, make_kind

PROGRAM = "mochi/bin/mochi"


class Mochi(BuiltBroker):
    """mochi-mqtt, started with a configuration rendered for this node."""

    rendered = frozenset({"persistence", "users"})

    broker: Literal["mochi"] = Field(description="The broker program.")
    persistence: bool = Field(False, description="Keep sessions and queued messages across restarts.")
    users: dict[str, str] = Field(
        default_factory=dict, description="User: password, of the only users that the broker admits."
    )

    def admitted(self) -> dict[str, str] | None:
        return self.users or None


def _start(_scene: Scene, placed: Placed) -> Start:
    directory, broker = placed.name, placed.model
    auth: dict[str, Any] = {"allow_all": True}
    if broker.users:
        # A rule without a user denies all other clients, because the hook admits clients that match no rule.
        admitted = [{"username": n, "password": p, "allow": True} for n, p in broker.users.items()]
        auth = {"ledger": {"auth": admitted}}
    hooks: dict[str, Any] = {"auth": auth}
    if broker.persistence:
        hooks["storage"] = {"bolt": {"path": f"{directory}/sessions.db"}}
    # The configuration has no `capabilities`: those of a file replace all of the broker's own, so it would
    # have to list all.
    config = {
        "listeners": [{"type": "tcp", "id": "tcp", "address": f":{broker.port}"}],
        "hooks": hooks,
        "logging": {"level": "WARN"},
    }
    path = f"{directory}/mochi.json"
    argv = (f"{PLACE}/{PROGRAM}", f"-config={path}")
    # Limits Go to one thread: this needs less memory, and in virtual time a node has one core.
    return Start(argv, path, json.dumps(config, indent=1) + "\n", {"GOMAXPROCS": "1"})


KIND = make_kind(Mochi, "mochi", "mochi-mqtt", _start, PROGRAM, 30_000_000)
