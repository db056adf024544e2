"""Run directories as a complete or crashed run leaves them, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

S = 1_000_000_000
T0 = 1_790_000_000 * S


def mqtt(name: str, subscribe: list[tuple[str, int]] | None = None, clean: bool = True) -> dict[str, Any]:
    """A plan's node with one MQTT client of that name."""
    wanted = [{"topic": topic, "qos": qos} for topic, qos in subscribe or []]
    client = {
        "client_id": name,
        "clean_session": clean,
        "keepalive_s": 2,
        "subscribe": wanted,
        "publish": None,
        "port": 1883,
    }
    return {"name": name, "group": name.rstrip("0123456789"), "software": [{"name": "mqtt", "mqtt": client}]}


def run_dir(path: Path, nodes: list[dict[str, Any]], captures: list[dict[str, Any]] | None = None) -> Path:
    """A run directory with a plan, a manifest and an empty raw/."""
    (path / "raw").mkdir(parents=True)
    (path / "pcap").mkdir()
    (path / "plan.json").write_text(json.dumps({"nodes": nodes, "links": [], "captures": captures or []}))
    (path / "manifest.json").write_text(json.dumps({"state": "complete", "warnings": []}))
    return path


def sent(publisher: str, seq: int, topic: str, qos: int, at: float, outcome: str = "acked") -> str:
    scheduled = T0 + round(at * S)
    times = (
        (scheduled, 0, 0)
        if outcome in ("unsent", "dropped")
        else (scheduled, scheduled + 1000, scheduled + 5000)
    )
    topic = f'"{topic}"' if "," in topic else topic
    return f"S,{publisher},{seq},{topic},{qos},{times[0]},{times[1]},{times[2]},1,{outcome}\n"


def received(subscriber: str, publisher: str, seq: int, qos: int, at: float, dup: int = 0) -> str:
    return f"R,{subscriber},{publisher},{seq},{qos},{dup},{T0 + round(at * S)}\n"


def client(name: str, what: str, at: float, detail: str = "") -> str:
    return f"C,{name},{what},{T0 + round(at * S)},{detail}\n"
