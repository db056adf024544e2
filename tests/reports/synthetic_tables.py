"""Makes the measured tables of a synthetic run: plausible numbers from a seed, in the contract's columns."""

from __future__ import annotations

import numpy as np
import polars as pl
from synthetic_shape import CLASS, PAYLOAD, T0, S, Shape, connect_ns, names, receiver

MESSAGES = {
    "flow": pl.UInt32,
    "name": pl.String,
    "class": pl.String,
    "pattern": pl.String,
    "sender": pl.String,
    "receiver": pl.String,
    "seq": pl.Int64,
    "bytes": pl.Int64,
    "scheduled_ns": pl.Int64,
    "sent_ns": pl.Int64,
    "settled_ns": pl.Int64,
    "attempts": pl.Int64,
    "outcome": pl.String,
    "received_ns": pl.Int64,
    "copies": pl.Int64,
    "reordered": pl.Boolean,
    "latency_ns": pl.Int64,
    "replied_ns": pl.Int64,
    "replies": pl.Int64,
    "round_trip_ns": pl.Int64,
    "covered": pl.Boolean,
    "guarantee": pl.String,
    "late": pl.Boolean,
}


def messages(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    seqs: dict[int, int] = {}
    ticks = int((shape.ramp_s + shape.hold_s) * shape.rate)
    for k in range(ticks):
        at = int(k / shape.rate * S)
        i = int(rng.integers(shape.clients))
        if at < connect_ns(shape, i + 1):
            continue
        name = names(shape)[i]
        seqs[i] = seqs.get(i, -1) + 1
        lost = bool(rng.random() < shape.loss)
        latency = int((42 + 8 * shape.qos + rng.gamma(2.0, 3.0)) * 1e6)
        sent = T0 + at + int(rng.integers(50_000, 400_000))
        rows.append(
            {
                "flow": i,
                "name": f"{name}.meter",
                "class": CLASS,
                "pattern": "publish",
                "sender": name,
                "receiver": receiver(shape, i),
                "seq": seqs[i],
                "bytes": PAYLOAD,
                "scheduled_ns": T0 + at,
                "sent_ns": sent,
                "settled_ns": sent + latency if shape.qos else sent,
                "attempts": 1,
                "outcome": "settled" if shape.qos else "sent",
                "received_ns": None if lost else T0 + at + latency,
                "copies": 0 if lost else 1 + int(shape.qos == 1 and k % 701 == 0),
                "reordered": not lost and k % 997 == 1,
                "latency_ns": None if lost else latency,
                "replies": 0,
                "covered": True,
                "guarantee": f"QoS {shape.qos}",
            }
        )
    return pl.DataFrame(rows, schema=MESSAGES, orient="row")


def sessions(shape: Shape) -> pl.DataFrame:
    everyone = ([("subscriber", 0)] if shape.scenario == 1 else []) + [
        (n, i + 1) for i, n in enumerate(names(shape))
    ]
    rows = []
    for name, index in everyone:
        at = T0 + connect_ns(shape, index)
        rows += [(name, "connecting", at, ""), (name, "connected", at + 3_000_000, "")]
        if shape.scenario == 2 or index == 0:
            rows.append((name, "subscribed", at + 4_000_000, ""))
        rows.append((name, "disconnected", T0 + (shape.ramp_s + shape.hold_s + shape.drain_s) * S, ""))
    return pl.DataFrame(rows, schema=["endpoint", "what", "t_ns", "detail"], orient="row").sort("t_ns")


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
                    # The increments are in ns, so that the CPU time is no multiple of the kernel's tick.
                    second * 1_234_567,
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


NO_PORTS = dict.fromkeys(("src_port", "dst_port"))
HEADERS = {"eth_bytes": 14, "vlan_bytes": 0, "ip_bytes": 20, "transport_bytes": 32}
PACKETS = {
    "t_ns": pl.Int64,
    "wire_bytes": pl.UInt32,
    "ethertype": pl.UInt16,
    "src": pl.String,
    "dst": pl.String,
    "protocol": pl.String,
    "src_port": pl.UInt16,
    "dst_port": pl.UInt16,
    "payload_bytes": pl.UInt32,
    "retransmission": pl.Boolean,
    "app": pl.String,
    "app_types": pl.List(pl.String),
    **dict.fromkeys([*HEADERS, "app_bytes", "data_bytes", "pad_bytes"], pl.UInt32),
}


def packets(shape: Shape, rng: np.random.Generator) -> pl.DataFrame:
    """Returns, for each message, PUBLISH in and out, an ACK for each, and the handshakes of the QoS."""
    rows: list[dict[str, object]] = []
    count = int(shape.hold_s * shape.rate)
    start = T0 + shape.ramp_s * S
    replies = ([], ["PUBACK"], ["PUBREC", "PUBREL", "PUBCOMP"])[shape.qos]
    for k in range(count):
        at = start + int(k / shape.rate * S)
        for _hop in range(2):
            rows.append(_packet(at, 14, PAYLOAD, "PUBLISH"))
            rows.append(_packet(at + 1000))
            for step, reply in enumerate(replies):
                rows.append(_packet(at + 2000 + step, 4, 0, reply, again=k % 211 == 0))
                rows.append(_packet(at + 3000 + step))
        if k % 2000 == 5:
            arp = {**dict.fromkeys(HEADERS, 0), "eth_bytes": 14, "payload_bytes": None}
            rows.append(
                _packet(at) | arp | {"wire_bytes": 42, "ethertype": 0x0806, "protocol": "arp", **NO_PORTS}
            )
        if k % 60 == 7:
            rows.append(_packet(at, 44, 0, "CONNECT"))
    return pl.DataFrame(rows, schema=PACKETS, orient="row")


def _packet(t_ns: int, app: int = 0, data: int = 0, what: str = "", again: bool = False) -> dict[str, object]:
    """Returns a TCP segment with `app` bytes of the protocol itself and `data` bytes of a
    message's payload.
    """
    return {
        "t_ns": t_ns,
        "wire_bytes": 66 + app + data,
        "ethertype": 0x0800,
        "src": "10.10.0.2",
        "dst": "10.10.0.1",
        "protocol": "tcp",
        "src_port": 40000,
        "dst_port": 1883,
        "payload_bytes": app + data,
        "retransmission": again,
        "app": "mqtt" if what else None,
        "app_types": [what] if what else None,
        **HEADERS,
        "app_bytes": app,
        "data_bytes": data,
        "pad_bytes": 0,
    }
