"""Makes run directories with frames at several capture points, for tests of where a message's time went.

Nodes a, b (a broker or server) and c; a link `way` of 8 Mbit/s (a byte takes 1 us) and 10 ms between a's
segment and that of b and c. Times are in microseconds after the message was due.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from frames import Frame, ethernet, ipv4, tcp, udp, write
from rundirs import T0, flow, guarantee, node, plan, run_dir

US = 1000
ADDRESS = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
SEGMENT = {"a": "left", "b": "right", "c": "right"}
Seen = dict[str, list[Frame]]  # frames by capture point


def message(seq: int = 0, number: int = 0, size: int = 100, purpose: int = 2) -> bytes:
    """Returns a payload of kind `bytes`."""
    return struct.pack(">4sBxxxIIqI", b"vNET", purpose, number, seq, T0, 0).ljust(size, b"\0")


def at(us: float, way: str, payload: bytes, *, seq: int | None = None, flags: int = 16) -> Frame:
    """Returns a frame from one node to another (`way`: "ac" for a to c): a datagram, or a TCP segment that
    begins at `seq`.
    """
    source, to = (ADDRESS[name] for name in way)
    inside = udp(payload) if seq is None else tcp(payload, seq=seq, flags=flags)
    packet = ipv4(inside, 17 if seq is None else 6, source, to)
    return Frame(ethernet(packet), T0 + round(us * US))


def lookup(us: float, way: str, answer: bool) -> Frame:
    source, to = (ADDRESS[name] for name in way)
    address = [bytes(map(int, one.split("."))) for one in (source, to)]
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2 if answer else 1)
    packet = body + bytes(6) + address[0] + bytes(6) + address[1]
    return Frame(ethernet(packet, 0x0806), T0 + round(us * US))


def planned(pattern: str = "push", impairment: dict[str, Any] | None = None, **way: Any) -> dict[str, Any]:
    """Returns the plan; `way` changes the impairment of the link's forward direction."""
    set_ = {"delay_ns": 10_000 * US, "rate_bps": 8_000_000, "limit_packets": 50} | way
    nodes = []
    for name, address in ADDRESS.items():
        card = {
            "name": "eth0",
            "port": name,
            "segment": SEGMENT[name],
            "address": address,
            "prefix": 24,
            "mtu": 1500,
        }
        nodes.append(node(name) | {"interfaces": [card]})
    made = plan(nodes, [flow("a", ("all", guarantee()), pattern=pattern, name="a.meter")], {"all": ["c"]})
    made["captures"] = [{"name": name, "at": f"node {name}", "keep": True} for name in ADDRESS]
    link = {"name": "way", "a": "left", "b": "right", "kind": "segments"}
    made["links"] = [link | {"forward": {"impairment": set_}, "reverse": {"impairment": set_}}]
    made["segments"] = [{"name": name, "subnet": "10.0.0.0/24", "mtu": 1500} for name in ("left", "right")]
    return made


def rows(*messages: dict[str, Any]) -> pl.DataFrame:
    """Returns messages.parquet; times of the messages are in us after T0."""
    shape = {
        "flow": pl.UInt32, "name": pl.String, "class": pl.String, "pattern": pl.String, "sender": pl.String,
        "receiver": pl.String, "seq": pl.Int64, "bytes": pl.Int64, "scheduled_ns": pl.Int64,
        "sent_ns": pl.Int64, "received_ns": pl.Int64, "replied_ns": pl.Int64, "latency_ns": pl.Int64,
        "round_trip_ns": pl.Int64, "settled_ns": pl.Int64, "attempts": pl.Int64, "outcome": pl.String,
        "copies": pl.Int64, "reordered": pl.Boolean, "replies": pl.Int64, "covered": pl.Boolean,
        "guarantee": pl.String, "late": pl.Boolean,
    }  # fmt: skip
    made = []
    for given in messages:
        row: dict[str, Any] = {
            "flow": 0,
            "name": "a.meter",
            "class": "meter",
            "pattern": "push",
            "sender": "a",
        }
        row |= {"receiver": "c", "seq": 0, "bytes": 100, "scheduled_ns": T0}
        times = {k: T0 + round(v * US) if v is not None else None for k, v in given.items() if k in TIMES}
        row |= {k: v for k, v in given.items() if k not in TIMES} | {f"{k}_ns": v for k, v in times.items()}
        for total, until in (("latency_ns", "received_ns"), ("round_trip_ns", "replied_ns")):
            end = row.get(until)
            row[total] = None if end is None else end - T0
        made.append(row)
    return pl.DataFrame([{name: row.get(name) for name in shape} for row in made], schema=shape)


TIMES = ("sent", "received", "replied")


def why_run(
    path: Path, seen: Seen, messages: Sequence[dict[str, Any]], of: dict[str, Any] | None = None
) -> Path:
    """Makes the run directory; points without frames have no pcap."""
    made = run_dir(path / "run", of or planned())
    rows(*messages).write_parquet(made / "messages.parquet")
    for point, frames in seen.items():
        write(made / "pcap" / f"{point}.pcap", frames)
    return made


def counted(run: Path, links: Sequence[tuple[float, int]] = (), stacks: dict[str, int] | None = None) -> None:
    """Writes counters: (time in us, dropped) of the link's forward direction, and of node c's stack."""
    samples = [
        {"t_ns": T0 + round(us * US), "link": "way", "direction": "forward", "class": None, "dropped": n}
        for us, n in links
    ]
    shape = {"t_ns": pl.Int64, "link": pl.String, "direction": pl.String, "class": pl.String}
    pl.DataFrame(samples, schema=shape | {"dropped": pl.Int64}).write_parquet(run / "links.parquet")
    moved = [{"node": "c", "counter": name, "value": n} for name, n in (stacks or {}).items()]
    kinds = {"node": pl.String, "counter": pl.String, "value": pl.Int64}
    pl.DataFrame(moved, schema=kinds).write_parquet(run / "stacks.parquet")


def format_of(run: Path, number: int) -> None:
    """Changes the format of the run's plan."""
    changed = json.loads((run / "plan.json").read_text()) | {"format": number}
    (run / "plan.json").write_text(json.dumps(changed))
