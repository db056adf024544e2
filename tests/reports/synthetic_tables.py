"""The measured tables of an invented run: plausible, seeded numbers in the contract's columns."""

from __future__ import annotations

import numpy as np
import polars as pl
from synthetic_shape import PAYLOAD, T0, S, Shape, connect_ns, names


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
    columns = ["t_ns", "wire_bytes", "protocol", "payload_bytes", "retransmission", "app_types"]
    return pl.DataFrame(rows, schema=columns, orient="row")
