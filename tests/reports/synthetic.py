"""Makes run directories as the contract describes them, with plausible numbers drawn from a seed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from synthetic_shape import CLASS, PAYLOAD, RULES, T0, S, Shape, connect_ns, names, receiver, topic
from synthetic_tables import events, host, links, messages, nodes, packets, sessions

from contract.codec import to_json
from contract.manifest import Manifest
from contract.plan import (
    NO_PLAN,
    Capture,
    Delivery,
    Direction,
    Event,
    Flow,
    Guarantee,
    Impairment,
    Interface,
    Link,
    Node,
    Payload,
    Plan,
    Process,
    Rate,
    Segment,
    Session,
    Software,
)
from contract.plan.flows import Schedule
from reports.rundir import Run

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from whole_plan import plan_of


def run_of(
    path: Path = Path("nowhere"),
    *,
    plan: dict[str, Any] | Plan | None = None,
    manifest: dict[str, Any] | None = None,
    captures: dict[str, Path] | None = None,
    **tables: pl.DataFrame,
) -> Run:
    """Returns a run object that has only the given parts."""
    planned = plan if isinstance(plan, Plan) else NO_PLAN if plan is None else plan_of(plan)
    return Run(
        path,
        lambda: planned,
        lambda: Manifest.of(manifest),
        list,
        tables,
        captures or {},
        connections={},
        missing=(),
        lab="lab",
    )


def write_run(path: Path, shape: Shape) -> Path:
    """Writes a complete run directory of that shape at `path`, and returns the path."""
    path.mkdir(parents=True)
    rng = np.random.default_rng(shape.seed * 1000 + shape.qos * 10 + shape.scenario)
    (path / "plan.json").write_text(to_json(plan(shape)))
    (path / "manifest.json").write_text(json.dumps(manifest(shape), indent=1))
    (path / "proof.json").write_text(json.dumps(proof(shape)))
    messages(shape, rng).write_parquet(path / "messages.parquet")
    sessions(shape).write_parquet(path / "sessions.parquet")
    nodes(shape, rng).write_parquet(path / "nodes.parquet")
    links(shape, rng).write_parquet(path / "links.parquet")
    host(shape, rng).write_parquet(path / "host.parquet")
    events(shape).write_parquet(path / "events.parquet")
    (path / "packets").mkdir()
    packets(shape, rng).write_parquet(path / "packets" / "lan.parquet")
    return path


def write_campaign(path: Path, shapes: list[Shape]) -> Path:
    """Writes a campaign directory: one run for each shape, and its line in cells.jsonl."""
    path.mkdir(parents=True)
    lines = []
    seen: dict[tuple[int, int], int] = {}
    for number, shape in enumerate(shapes):
        key = (shape.scenario, shape.qos)
        seen[key] = seen.get(key, 0) + 1
        run_dir = f"runs/{number:03d}"
        write_run(path / run_dir, shape)
        lines.append(
            {
                "cell": f"s{shape.scenario}-q{shape.qos}-r{seen[key]}",
                "levels": {"scenario": shape.scenario, "qos": shape.qos},
                "repetition": seen[key],
                "seed": shape.seed,
                "run_dir": run_dir,
                "state": "complete",
            }
        )
    (path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def plan(shape: Shape) -> Plan:
    broker = Software("mosquitto", "broker", "mosquitto", Process(("mosquitto",)), ports={"mqtt": (1883,)})
    nodes = [_node("broker", "broker", 1, broker)]
    nodes += [_client(shape, name, i + 1) for i, name in enumerate(names(shape))]
    if shape.scenario == 1:
        nodes.append(_client(shape, "subscriber", 0))
    wan = Impairment(delay_ns=20_000_000, jitter_ns=2_000_000, loss=0.01, limit_packets=1000)
    link = Link(
        "uplink",
        "lan",
        "core",
        "segments",
        Direction(wan, "vnet-demo", "ul-a", "vnet-demo", "ul-b"),
        Direction(wan, "vnet-demo", "ul-b", "vnet-demo", "ul-a"),
    )
    return Plan(
        lab="demo",
        core_netns="vnet-demo",
        seed=shape.seed,
        topology=f"topologies/mqtt-{shape.scenario}.yaml",
        parameters={
            "clients": shape.clients,
            "qos": shape.qos,
            "rate": f"{shape.rate}/s",
            "hold": f"{shape.hold_s} s",
        },
        reference="vnet_2014" if shape.reference else None,
        scenario=f"mqtt_scenario_{shape.scenario}" if shape.reference else None,
        segments=(
            Segment("lan", "br-lan", "10.10.0.0/16", 1500),
            Segment("core", "br-core", "10.11.0.0/16", 1500),
        ),
        nodes=tuple(nodes),
        links=(link,),
        captures=(Capture("lan", "segment lan", "vnet-demo", "br-lan", 96, "", False),),
        events=(
            Event("hold", 20 * S, "link-down", ("uplink",), {}, "link uplink down"),
            Event("hold", 30 * S, "link-up", ("uplink",), {}, "link uplink up"),
        ),
        ramp_ns=shape.ramp_s * S,
        hold_ns=shape.hold_s * S,
        drain_ns=shape.drain_s * S,
        steps=(),
        predictions=(),
        flows=tuple(flow(shape, i) for i in range(shape.clients)),
        receivers={f"{topic(shape, i)} at broker": (receiver(shape, i),) for i in range(shape.clients)},
        format=2,
    )


def flow(shape: Shape, index: int) -> Flow:
    """Returns the flow of one client, which publishes in turn with the others, as one common sequence of
    messages.
    """
    name, at = names(shape)[index], topic(shape, index)
    schedule = Schedule("shared", (Rate(0, shape.rate),), shape.seed, index, shape.clients)
    guarantee = Guarantee(
        f"QoS {shape.qos}",
        RULES[shape.qos],
        lossless=shape.qos > 0,
        single=shape.qos != 1,
        while_session=True,
    )
    end = (shape.ramp_s + shape.hold_s) * S
    deliveries = (Delivery(f"{at} at broker", guarantee),)
    payload = Payload("metering-xml", PAYLOAD)
    return Flow(
        f"{name}.meter",
        CLASS,
        "publish",
        name,
        deliveries,
        payload,
        schedule,
        connect_ns(shape, index + 1),
        end,
        topic=at,
    )


def _node(name: str, group: str, number: int, *software: Software) -> Node:
    face = Interface(
        "eth0", f"p{number}", "lan", f"10.10.0.{number}", 16, f"02:00:00:00:00:{number:02x}", 1500
    )
    return Node(name, group, "light", name, f"vnet-demo.{name}", f"vnet/demo/{name}", (face,), software)


def _client(shape: Shape, name: str, index: int) -> Node:
    end = (shape.ramp_s + shape.hold_s + shape.drain_s) * S
    session = Session(name, connect_ns(shape, index), end, patience_ns=90 * S)
    meter = Software("meter" if index else "reader", "client", "mqtt", session=session)
    return _node(name, "client" if index else name, index + 2, meter)


def manifest(shape: Shape) -> dict[str, object]:
    a, b = T0 + shape.ramp_s * S, T0 + (shape.ramp_s + shape.hold_s) * S
    warnings = [
        {
            "code": "steal",
            "text": "The hypervisor took 4.1 % of the CPU during the hold.",
            "remedy": "Run on a quiet machine.",
            "suspect": False,
        },
        {
            "code": "proof",
            "text": "link uplink reverse: jitter: requested 2 ms, measured 2.7 to 3.1 ms (500 frames)",
            "remedy": "compare with proof.json",
            "suspect": True,
        },
    ]
    return {
        "lab": "demo",
        "run": "2026-09-21T12-00-00",
        "state": "complete",
        "error": None,
        "parameters": {
            "clients": shape.clients,
            "qos": shape.qos,
            "rate": f"{shape.rate}/s",
            "hold": f"{shape.hold_s} s",
        },
        "seed": shape.seed,
        "kernel": {"kind": "uml", "release": "6.1.0", "why": "the host's kernel has no sch_netem"},
        "time": "real",
        "versions": {
            "vnet": "0.1.0",
            "mosquitto": "2.0.11",
            "tcpdump": "4.99.3",
            "iproute2": "6.1.0",
            "agent": "0.1.0",
            "python": "3.11.2",
        },
        "host": {
            "cpu": "Example CPU",
            "cores": 2,
            "mhz": 3000,
            "memory_bytes": 8_000_000_000,
            "kernel": "6.1.0",
        },
        "t0_ns": T0,
        "phases": {"ramp": [T0, a], "hold": [a, b], "drain": [b, b + shape.drain_s * S]},
        "warnings": warnings if shape.suspect else [],
        "suspect": shape.suspect,
        "nodes": {"broker": "running", **dict.fromkeys(names(shape), "running")},
        "captures": {"lan": {"packets": 1234, "dropped_kernel": 0, "dropped_interface": 0}},
    }


def proof(shape: Shape) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for direction in ("forward", "reverse"):
        for quantity, asked, got, low, high, unit in (
            ("reach", 1.0, 1.0, None, None, "share"),
            ("delay", 20.0, 20.06, 19.9, 20.2, "ms"),
            ("jitter", 2.0, 1.95, 1.8, 2.1, "ms"),
            ("loss", 0.01, 0.012, 0.004, 0.021, "share"),
        ):
            failed = shape.suspect and quantity == "jitter" and direction == "reverse"
            rows.append(
                {
                    "link": "uplink",
                    "direction": direction,
                    "quantity": quantity,
                    "requested": asked,
                    "measured": 2.9 if failed else got,
                    "low": 2.7 if failed else low,
                    "high": 3.1 if failed else high,
                    "unit": unit,
                    "n": 500,
                    "verdict": "fails" if failed else "holds",
                    "reason": "outside the interval" if failed else "",
                }
            )
    return rows
