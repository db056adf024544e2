"""Writes run directories by hand, as a complete or crashed run leaves them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from contract.plan import Plan

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from whole_plan import plan_of as plan_of
from whole_plan import whole as whole

S = 1_000_000_000
T0 = 1_790_000_000 * S
MOST = {"lossless": True, "single": True, "ordered": False, "while_session": True}


def node(
    name: str, *, patience_s: float | None = 3, listens: bool = False, program: bool = False, **more: Any
) -> dict[str, Any]:
    """Returns a plan's node with one software, whose session has the node's name; with `program` it also has
    a process.
    """
    session = {
        "endpoint": name, "connect_ns": 0, "disconnect_ns": 100 * S, "listens": listens,
        "patience_ns": None if patience_s is None else round(patience_s * S),
    }  # fmt: skip
    software = {
        "name": "meter", "kind": "some", "role": "client", "process": {"argv": ["x"]} if program else None,
        "session": session, "spec": {}, "ports": {},
    }  # fmt: skip
    return {"name": name, "group": name.rstrip("0123456789"), "software": [software | more]}


def guarantee(name: str = "all", rule: str = "nothing is lost or doubled", **kept: bool) -> dict[str, Any]:
    """Returns a delivery guarantee: MOST, changed by the arguments `kept`."""
    return {"name": name, "rule": rule} | MOST | kept


def flow(
    sender: str, *deliveries: tuple[str, dict[str, Any]], name: str = "", class_: str = "",
    pattern: str = "publish", deadline_s: float = 0,
) -> dict[str, Any]:  # fmt: skip
    """Returns a flow of a plan; `deliveries` are pairs (set of receivers, guarantee)."""
    payload = {"kind": "bytes", "bytes": 100}
    return {
        "name": name or f"{sender}.meter", "traffic_class": class_ or "meter", "pattern": pattern,
        "sender": sender, "deliveries": [{"receivers": to, "guarantee": what} for to, what in deliveries],
        "payload": payload, "schedule": None, "start_ns": 0, "stop_ns": 100 * S,
        "deadline_ns": round(deadline_s * S), "reply": payload if pattern == "request" else None, "topic": "",
    }  # fmt: skip


def plan(
    nodes: list[dict[str, Any]], flows: list[dict[str, Any]] | None = None,
    receivers: dict[str, list[str]] | None = None, captures: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "format": 2, "nodes": nodes, "links": [], "captures": captures or [], "flows": flows or [],
        "receivers": receivers or {},
    }  # fmt: skip


def run_dir(path: Path, of: dict[str, Any]) -> Path:
    """Makes a run directory with the plan (its missing keys filled in), a manifest and an empty raw/."""
    of = whole(Plan, of)
    (path / "raw").mkdir(parents=True)
    (path / "pcap").mkdir()
    (path / "plan.json").write_text(json.dumps(of))
    (path / "manifest.json").write_text(json.dumps({"state": "complete", "warnings": []}))
    return path


def sent(flow: int, seq: int, at: float, outcome: str = "settled") -> str:
    scheduled = T0 + round(at * S)
    gone = outcome in ("unsent", "dropped")
    times = (scheduled, 0, 0) if gone else (scheduled, scheduled + 1000, scheduled + 5000)
    return f"S,{flow},{seq},100,{times[0]},{times[1]},{times[2]},1,{outcome}\n"


def received(flow: int, seq: int, receiver: str, at: float, copy: int = 0, leg: int = 0) -> str:
    return f"R,{flow},{seq},{receiver},{leg},{T0 + round(at * S)},{copy}\n"


def session(endpoint: str, what: str, at: float, detail: str = "", peer: str = "") -> str:
    last = f",{peer}" if peer else ""
    return f"C,{endpoint},{what},{T0 + round(at * S)},{detail}{last}\n"


def progress(flow: int, endpoint: str, leg: int, at: float, carried: int, rest: str = ",,,") -> str:
    """Returns a B record, which states a transfer's progress; `rest` is packets, lost, retransmits and
    rtt_ns.
    """
    return f"B,{flow},{endpoint},{leg},{T0 + round(at * S)},{carried},{rest}\n"
