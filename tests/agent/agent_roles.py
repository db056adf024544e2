"""Makes items of a workload and reads the records that the roles then write, for the tests of the agent's
roles.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

from agent_launcher import Launcher

SECOND = 1_000_000_000


def flow(
    number: int, pattern: str, rate: float, stop_s: float, size: int = 100, **more: Any
) -> dict[str, Any]:
    """Returns a flow with a payload of `size` bytes from the start of the workload until `stop_s`; only its
    sender gets the rate.
    """
    schedule = {"kind": "own", "rates": [{"from_ns": 0, "per_s": rate}], "seed": 5, "arrivals": "periodic"}
    return {
        "number": number, "pattern": pattern, "payload": {"kind": "bytes", "bytes": size},
        "schedule": schedule, "start_ns": 0, "stop_ns": int(stop_s * SECOND), **more,
    }  # fmt: skip


def reply(size: int) -> dict[str, Any]:
    return {"reply": {"kind": "bytes", "bytes": size}}


def item(
    kind: str, node: str, spec: dict[str, Any], *flows: dict[str, Any], listens: bool = False
) -> dict[str, Any]:
    """Returns a workload item: a role whose endpoint has its node's name."""
    session = {"endpoint": node, "connect_ns": 0, "disconnect_ns": 60 * SECOND, "listens": listens}
    software = {"name": kind, "kind": kind, "role": "client", "session": session, "spec": spec}
    return {"node": node, "software": software, "flows": list(flows)}


def peer(endpoint: str, index: int, port: int) -> dict[str, Any]:
    """Returns the address of node `index` of `Launcher.wire` as a peer."""
    return {"endpoint": endpoint, "address": f"10.77.{index // 250}.{index % 250 + 1}", "port": port}


def begin(launcher: Launcher, items: list[dict[str, Any]], path: Path | None = None) -> None:
    """Gives the launcher the records file and the workload, and starts the workload now."""
    launcher.do("messages", path=str(path or launcher.directory / "messages.csv"))
    launcher.do("workload", items=items)
    offset = launcher.do("hello")["clock_offset_ns"]
    launcher.do("go", t0_ns=offset + time.monotonic_ns())


def play(
    launcher: Launcher, items: list[dict[str, Any]], seconds: float, path: Path | None = None
) -> dict[str, Any]:
    """Starts the workload as `begin` does, waits `seconds`, finishes it and returns the totals."""
    begin(launcher, items, path)
    time.sleep(seconds)
    totals: dict[str, Any] = launcher.do("finish")["totals"]
    return totals


def records(directory: Path, kind: str) -> list[list[str]]:
    with (directory / "messages.csv").open() as file:
        return [row for row in csv.reader(file) if row[0] == kind]
