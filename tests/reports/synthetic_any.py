"""Makes a run with more kinds of traffic than a paper's workload: requests, pushes, a bulk transfer, TCP
connections.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import polars as pl
from synthetic import write_run
from synthetic_shape import T0, S, Shape
from synthetic_tables import MESSAGES

ODD = '<i>ask</i> & "co"'  # the name of a class may contain any characters
SHAPE = Shape(clients=3, ramp_s=5, hold_s=30, reference=False, events=False)
GUARANTEES = {"request": "UDP", "push": "TCP"}
TRANSFERS = ("flow", "name", "class", "sender", "receiver", "endpoint", "leg", "t_ns", "bytes", "packets")


def write_any(path: Path, flows: bool = True) -> Path:
    """Writes a run directory with two classes of messages (one called `ODD`), a bulk transfer and 12
    connections.

    Without `flows` it has only the data that any program leaves: samples of nodes and links, and a capture.
    """
    write_run(path, dataclasses.replace(SHAPE, loss=0.0))
    plan = json.loads((path / "plan.json").read_text())
    template = plan["flows"][0]
    plan["flows"] = [_flow(template, i, pattern) for i, pattern in enumerate(GUARANTEES)] if flows else []
    plan["flows"] += (
        [{**template, "name": "load.bulk", "pattern": "stream", "schedule": None}] if flows else []
    )
    plan["nodes"][0]["software"][0]["role"] = "server"
    plan["links"][0]["forward"]["impairment"]["rate_bps"] = 10_000_000
    (path / "plan.json").write_text(json.dumps(plan))
    pl.DataFrame(_messages() if flows else [], schema=MESSAGES, orient="row").write_parquet(
        path / "messages.parquet"
    )
    if flows:
        _transfers().write_parquet(path / "transfers.parquet")
        _windows().write_parquet(path / "windows.parquet")
        (path / "connections").mkdir()
        _connections().write_parquet(path / "connections" / "lan.parquet")
        _stacks(plan).write_parquet(path / "stacks.parquet")
        _disks(plan).write_parquet(path / "disks.parquet")
    proof = json.loads((path / "proof.json").read_text())
    (path / "proof.json").write_text(json.dumps([_expected(row) for row in proof]))
    return path


def _flow(template: dict[str, Any], number: int, pattern: str) -> dict[str, Any]:
    delivery = template["deliveries"][0]
    guarantee = {
        **delivery["guarantee"],
        "name": GUARANTEES[pattern],
        "lossless": pattern == "push",
        "single": True,
    }
    return {
        **template,
        "name": f"client1.{pattern}",
        "traffic_class": ODD if pattern == "request" else "client.tell",
        "pattern": pattern,
        "deliveries": [{**delivery, "guarantee": guarantee}],
    }


def _messages() -> list[dict[str, object]]:
    """Returns 200 requests, of which 10 got no reply and 4 more were late, and 100 pushes, of which none was
    lost.
    """
    rows = []
    for number, pattern in enumerate(GUARANTEES):
        for seq in range(200 if pattern == "request" else 100):
            at = T0 + 6 * S + seq * S // 10
            request, lost = pattern == "request", pattern == "request" and seq % 20 == 0
            took = (120 if seq % 50 == 1 else 20 + seq % 7) * 1_000_000
            rows.append(
                {
                    "flow": number,
                    "name": f"client1.{pattern}",
                    "class": ODD if request else "client.tell",
                    "pattern": pattern,
                    "sender": "client1",
                    "receiver": "subscriber",
                    "seq": seq,
                    "bytes": 100,
                    "scheduled_ns": at,
                    "sent_ns": at + 10_000,
                    "settled_ns": None if lost else at + took,
                    "attempts": 1,
                    "outcome": "unsettled" if lost else "settled" if request else "sent",
                    "received_ns": None if lost else at + took // 2,
                    "copies": int(not lost),
                    "reordered": False,
                    "latency_ns": None if lost else took // 2,
                    "replied_ns": at + took if request and not lost else None,
                    "round_trip_ns": took if request and not lost else None,
                    "covered": True,
                    "guarantee": GUARANTEES[pattern],
                    "late": (lost or took > 100_000_000) if request else None,
                }
            )
    return rows


def _transfers() -> pl.DataFrame:
    """Returns the samples of 8 Mbit/s for 20 s, counted at both ends, with 3 segments retransmitted each
    second.
    """
    rows = []
    for second in range(1, 21):
        for leg, endpoint in ((0, "client1"), (1, "subscriber")):
            who = (2, "load.bulk", "load.bulk", "client1", "subscriber", endpoint, leg)
            again, rtt = (3 * second, 41_000_000) if leg == 0 else (None, None)
            done = (T0 + (8 + second) * S, second * 1_000_000, second * 700)
            rows.append((*who, *done, None, again, rtt, 8e6 if second > 1 else None))
    columns = [*TRANSFERS, "lost", "retransmits", "rtt_ns", "bps"]
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def _stacks(plan: dict[str, Any]) -> pl.DataFrame:
    """Returns kernel counters in which every node dropped seven datagrams and retransmitted one segment."""
    counted = {"UdpRcvbufErrors": 7, "TcpRetransSegs": 1, "IpInReceives": 1000}
    rows = [(n["name"], name, v, n["group"]) for n in plan["nodes"] for name, v in counted.items()]
    return pl.DataFrame(rows, schema=("node", "counter", "value", "group"), orient="row")


def _disks(plan: dict[str, Any]) -> pl.DataFrame:
    """Returns disk I/O in which every node read 2 MB and wrote 500 kB, and has its own files in memory."""
    rows = [(n["name"], "processes", 2_000_000, 500_000, None, None, True, n["group"]) for n in plan["nodes"]]
    columns = ("node", "disk", "read_bytes", "written_bytes", "reads", "writes", "memory", "group")
    return pl.DataFrame(rows, schema=columns, orient="row")


def _windows() -> pl.DataFrame:
    """Returns the congestion windows of two connections (10 and 20 segments), every 100 ms for a second."""
    rows = [
        {
            "name": "load.bulk",
            "stream": stream,
            "t_ns": T0 + 9 * S + n * S // 10,
            "segments": 10 * (stream + 1),
        }
        for n in range(10)
        for stream in (0, 1)
    ]
    return pl.DataFrame(rows)


def _connections() -> pl.DataFrame:
    """Returns 12 connections of one second each; the k-th carried k kB in one direction and 10 kB in the
    other.
    """
    ways = ("packets", "wire_bytes", "payload_bytes", "retransmissions", "srtt_ns", "rtt_samples")
    rows = []
    for k in range(12):
        first = T0 + (10 + k) * S
        row = {
            "stream": k,
            "src": f"10.10.0.{k + 2}",
            "src_port": 40000 + k,
            "dst": "10.10.0.1",
            "dst_port": 8080,
            "app": "http",
            "first_ns": first,
            "last_ns": first + S,
            "syn_synack_ns": 30_000_000,
            "synack_ack_ns": 10_000_000 + k * 100_000,
            "end": "fin",
        }
        there, back = (10, 2000 * k, 1000 * k, 1, 5_000_000, 4), (12, 11_000, 10_000, 0, 40_000_000, 9)
        row |= dict(zip((f"forward_{name}" for name in ways), there, strict=True))
        row |= dict(zip((f"reverse_{name}" for name in ways), back, strict=True))
        rows.append(row)
    return pl.DataFrame(rows)


def _expected(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row with its expected value: a delay of 20 ms becomes 21.2 ms, because a frame of 1.5 kB
    takes 1.2 ms at 10 Mbit/s.
    """
    return {**row, "expected": 21.2 if row["quantity"] == "delay" else row["requested"]}
