"""Make run directories as the contract describes them, with invented, plausible, seeded numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from orchestrator.plan.codec import to_json
from orchestrator.plan.model import (
    Capture,
    Direction,
    Event,
    Impairment,
    Interface,
    Link,
    Mqtt,
    Node,
    Plan,
    Process,
    Publish,
    Schedule,
    Segment,
    Software,
    Subscribe,
)

S = 1_000_000_000
T0 = 1_790_000_000 * S
PAYLOAD = 717


@dataclass(frozen=True)
class Shape:
    """What is invented: scenario 1 or 2, QoS, size and length of the run, and how much is lost."""

    scenario: int = 1
    qos: int = 1
    clients: int = 30
    ramp_s: int = 30
    hold_s: int = 60
    drain_s: int = 5
    rate: float = 20.0
    loss: float = 0.0
    seed: int = 1
    reference: bool = True
    suspect: bool = False
    events: bool = True


def write_run(path: Path, shape: Shape) -> Path:
    """A complete run directory of that shape at `path`."""
    path.mkdir(parents=True)
    rng = np.random.default_rng(shape.seed * 1000 + shape.qos * 10 + shape.scenario)
    (path / "plan.json").write_text(to_json(plan(shape)))
    (path / "manifest.json").write_text(json.dumps(manifest(shape), indent=1))
    (path / "proof.json").write_text(json.dumps(proof(shape)))
    messages(shape, rng).write_parquet(path / "messages.parquet")
    clients(shape).write_parquet(path / "clients.parquet")
    nodes(shape, rng).write_parquet(path / "nodes.parquet")
    links(shape, rng).write_parquet(path / "links.parquet")
    host(shape, rng).write_parquet(path / "host.parquet")
    events(shape).write_parquet(path / "events.parquet")
    (path / "packets").mkdir()
    packets(shape, rng).write_parquet(path / "packets" / "lan.parquet")
    return path


def write_campaign(path: Path, shapes: list[Shape]) -> Path:
    """A campaign directory: one run per shape and its line in cells.jsonl."""
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
                "factors": {"scenario": shape.scenario, "qos": shape.qos},
                "repetition": seen[key],
                "seed": shape.seed,
                "run_dir": run_dir,
                "state": "complete",
            }
        )
    (path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def names(shape: Shape) -> list[str]:
    return [f"client{i + 1}" for i in range(shape.clients)]


def connect_ns(shape: Shape, index: int) -> int:
    return index * shape.ramp_s * S // (shape.clients + 1)


def plan(shape: Shape) -> Plan:
    end = (shape.ramp_s + shape.hold_s) * S
    nodes = [_node("broker", "broker", 1, Software("mosquitto", "broker", Process(("mosquitto",))))]
    total = shape.clients
    for i, name in enumerate(names(shape)):
        publish = Publish(
            f"meter/{name}" if shape.scenario == 2 else f"meter/{i}",
            shape.qos,
            "metering-xml",
            PAYLOAD,
            Schedule("shared", shape.rate, shape.seed, i, total),
            0,
            end,
        )
        topics = (Subscribe(f"meter/client{(i + 1) % total + 1}", shape.qos),) if shape.scenario == 2 else ()
        nodes.append(_client(shape, name, i + 1, publish, topics))
    if shape.scenario == 1:
        nodes.append(_client(shape, "subscriber", 0, None, (Subscribe("meter/#", shape.qos),)))
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
    )


def _node(name: str, group: str, number: int, *software: Software) -> Node:
    face = Interface(
        "eth0", f"p{number}", "lan", f"10.10.0.{number}", 16, f"02:00:00:00:00:{number:02x}", 1500
    )
    return Node(name, group, "light", name, f"vnet-demo.{name}", f"vnet/demo/{name}", (face,), software)


def _client(
    shape: Shape, name: str, index: int, publish: Publish | None, topics: tuple[Subscribe, ...]
) -> Node:
    end = (shape.ramp_s + shape.hold_s + shape.drain_s) * S
    mqtt = Mqtt("10.10.0.1", 1883, "3.1.1", name, connect_ns(shape, index), end, 60, True, publish, topics, 0)
    return _node(name, "client" if publish else name, index + 2, Software("mqtt", "client", None, mqtt))


def manifest(shape: Shape) -> dict[str, object]:
    a, b = T0 + shape.ramp_s * S, T0 + (shape.ramp_s + shape.hold_s) * S
    warnings = [
        {
            "code": "steal",
            "text": "The hypervisor took 4.1 % of the CPU during the hold.",
            "remedy": "Run on a quiet machine.",
        }
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
                    "asked": asked,
                    "realised": 2.9 if failed else got,
                    "low": 2.7 if failed else low,
                    "high": 3.1 if failed else high,
                    "unit": unit,
                    "n": 500,
                    "verdict": "fails" if failed else "holds",
                    "reason": "outside the interval" if failed else "",
                }
            )
    return rows


def messages(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    seqs: dict[str, int] = {}
    ticks = int((shape.ramp_s + shape.hold_s) * shape.rate)
    for k in range(ticks):
        at = int(k / shape.rate * S)
        i = int(rng.integers(shape.clients))
        if at < connect_ns(shape, i + 1):
            continue
        name = names(shape)[i]
        seqs[name] = seqs.get(name, 0) + 1
        lost = bool(rng.random() < shape.loss)
        latency = int((42 + 8 * shape.qos + rng.gamma(2.0, 3.0)) * 1e6)
        sent = T0 + at + int(rng.integers(50_000, 400_000))
        rows.append(
            {
                "publisher": name,
                "seq": seqs[name],
                "topic": f"meter/{name if shape.scenario == 2 else i}",
                "qos": shape.qos,
                "scheduled_ns": T0 + at,
                "sent_ns": sent,
                "acked_ns": sent + latency if shape.qos else None,
                "outcome": "acked" if shape.qos else "sent",
                "subscriber": "subscriber" if shape.scenario == 1 else names(shape)[(i - 1) % shape.clients],
                "received_ns": None if lost else T0 + at + latency,
                "copies": 0 if lost else 1 + int(shape.qos == 1 and k % 701 == 0),
                "reordered": not lost and k % 997 == 1,
                "latency_ns": None if lost else latency,
            }
        )
    schema = {
        "publisher": pl.String,
        "seq": pl.Int64,
        "topic": pl.String,
        "qos": pl.Int64,
        "scheduled_ns": pl.Int64,
        "sent_ns": pl.Int64,
        "acked_ns": pl.Int64,
        "outcome": pl.String,
        "subscriber": pl.String,
        "received_ns": pl.Int64,
        "copies": pl.Int64,
        "reordered": pl.Boolean,
        "latency_ns": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def clients(shape: Shape) -> pl.DataFrame:
    everyone = ([("subscriber", 0)] if shape.scenario == 1 else []) + [
        (n, i + 1) for i, n in enumerate(names(shape))
    ]
    rows = []
    for name, index in everyone:
        at = T0 + connect_ns(shape, index)
        rows += [(name, "connecting", at, ""), (name, "connected", at + 3_000_000, "")]
        rows.append((name, "disconnected", T0 + (shape.ramp_s + shape.hold_s + shape.drain_s) * S, ""))
    return pl.DataFrame(rows, schema=["client", "what", "t_ns", "detail"], orient="row").sort("t_ns")


def nodes(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    rows = []
    level = (1.0, 1.25, 2.2)[shape.qos]
    wire = (1.1, 1.25, 1.6)[shape.qos]
    everyone = ["broker", *names(shape)] + (["subscriber"] if shape.scenario == 1 else [])
    end = shape.ramp_s + shape.hold_s + shape.drain_s
    for second in range(1, end + 1):
        share_connected = min(1.0, second / shape.ramp_s) if second <= shape.ramp_s + shape.hold_s else 0.0
        offered = shape.rate * share_connected
        for name in everyone:
            noise = 1 + 0.05 * rng.standard_normal()
            if name == "broker":
                cpu, rx, tx = (
                    0.001 * offered * level,
                    offered * 830 * wire,
                    offered * (815 if shape.scenario == 1 else 830) * wire,
                )
            elif name == "subscriber":
                cpu, rx, tx = 0.0007 * offered * level, offered * 815 * wire, offered * 90 * wire
            else:
                part = offered / shape.clients * (1 if shape.scenario == 1 else 2)
                cpu, rx, tx = 0.0008 * part * level, part * 90 * wire, part * 830 * wire
            rows.append(
                (
                    T0 + second * S,
                    name,
                    "client" if name.startswith("client") else name,
                    second * 1_234_567,  # nanoseconds, not ticks
                    abs(cpu * noise),
                    rx * 8 * noise,
                    tx * 8 * noise,
                    rx / 400,
                    tx / 400,
                    2_400_000 if name != "broker" else 9_000_000,
                )
            )
    columns = [
        "t_ns",
        "node",
        "group",
        "cpu_ns",
        "cpu_share",
        "rx_bps",
        "tx_bps",
        "rx_pps",
        "tx_pps",
        "memory_bytes",
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


def links(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    rows = []
    dropped = {"forward": 0, "reverse": 0}
    for second in range(1, shape.ramp_s + shape.hold_s + shape.drain_s + 1):
        for direction in dropped:
            dropped[direction] += int(rng.poisson(0.4))
            bps = shape.rate * 900 * 8 * min(1.0, second / shape.ramp_s)
            rows.append(
                (
                    T0 + second * S,
                    "uplink",
                    direction,
                    bps,
                    bps / 7200,
                    dropped[direction],
                    float(rng.integers(0, 9000)),
                    int(rng.integers(0, 12)),
                )
            )
    columns = ["t_ns", "link", "direction", "bps", "pps", "dropped", "backlog_bytes", "backlog_packets"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def host(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    rows = []
    for second in range(1, shape.ramp_s + shape.hold_s + shape.drain_s + 1):
        busy = 0.12 + 0.004 * shape.qos + 0.1 * min(1.0, second / shape.ramp_s)
        for where, factor in (("lab", 1.0), ("outer", 0.8)):
            rows.append(
                (
                    T0 + second * S,
                    where,
                    busy * factor * (1 + 0.05 * rng.standard_normal()),
                    0.002,
                    0.6,
                    5_000_000_000,
                )
            )
    columns = ["t_ns", "where", "busy_share", "steal_share", "load1", "memory_available_bytes"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def events(shape: Shape) -> pl.DataFrame:
    at = T0 + (shape.ramp_s + 20) * S
    rows = [
        (at, at, "hold", "link-down", ["uplink"], "{}", True, "", "link uplink down"),
        (at + 10 * S, at + 10 * S, "hold", "link-up", ["uplink"], "{}", True, "", "link uplink up"),
    ]
    columns = ["t_ns", "planned_ns", "phase", "action", "targets", "args", "ok", "error", "label"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame if shape.events else frame.clear()


def packets(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    """Per message: PUBLISH in and out, an ACK for each, and the handshakes of the QoS."""
    rows: list[tuple[int, int, str, int, bool, list[str]]] = []
    count = int(shape.hold_s * shape.rate)
    start = T0 + shape.ramp_s * S
    replies = ([], ["PUBACK"], ["PUBREC", "PUBREL", "PUBCOMP"])[shape.qos]
    for k in range(count):
        at = start + int(k / shape.rate * S)
        for _hop in range(2):
            rows.append((at, 66 + 14 + PAYLOAD, "tcp", 14 + PAYLOAD, False, ["PUBLISH"]))
            rows.append((at + 1000, 66, "tcp", 0, False, []))
            for step, reply in enumerate(replies):
                rows.append((at + 2000 + step, 70, "tcp", 4, k % 211 == 0, [reply]))
                rows.append((at + 3000 + step, 66, "tcp", 0, False, []))
        if k % 2000 == 5:
            rows.append((at, 42, "arp", 0, False, []))
        if k % 60 == 7:
            rows.append((at, 110, "tcp", 44, False, ["CONNECT"]))
    columns = ["t_ns", "wire_bytes", "protocol", "payload_bytes", "retransmission", "mqtt_types"]
    return pl.DataFrame(rows, schema=columns, orient="row")
