"""Runs hours in virtual time for `make soak`, each with the same events at moments from a seed, and tests
that no hour differs.

A broker restarts, a client is killed, a link flaps and loses packets. The figures of the last hour (latency,
loss, memory of each node) must equal those of the second; the first includes the ramp.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import polars as pl
from cases import Case

HOUR_S = 3600
TOPOLOGY = """\
name: soak-hours
seed: SEED
segments: {field: {subnet: 10.79.0.0/24}, centre: {subnet: 10.79.0.0/24}}
nodes:
  server:
    segment: centre
    software: {mosquitto: {broker: mosquitto, persistence: true}, answers: {udp: {listen: 9000}}}
  reader:
    segment: centre
    software: {reader: {mqtt: {broker: server, clean_session: false, subscribe: [{topic: m/#, qos: 1}]}}}
groups:
  client:
    count: 3
    segment: field
    software:
      meter:
        mqtt:
          broker: server
          clean_session: false
          publish: {topic: "m/{index}", qos: 1, rate: 1 /s, rate_of: client}
      ask: {udp: {to: server, request: {size: 100 B, reply: 100 B, rate: 1 /s, rate_of: client}}}
links: {way: {between: [field, centre], both: {delay: 10 ms, rate: 10 Mbit/s}}}
run: {connect_interval: 100 ms, hold: HOURS h, drain: 30 s, on_node_failure: continue}
timeline:
"""
EVENTS = (
    "link-down: way, for: 20 s",
    "impair: way, both: {delay: 50 ms, loss: 5 %, rate: 1 Mbit/s}, for: 120 s",
    "flap: way, down: 1 s, up: 2 s, times: 10",
    "restart: server, software: mosquitto",
    "kill: client2, for: 30 s",
    "run: 'head -c 1000000 /dev/zero > /tmp/x; rm /tmp/x', on: client1",
)
SAME = 0.01  # largest difference from the second hour, as a share of a figure
GROWN_BYTES = 256 << 10  # largest growth of a node's memory over all hours


def topology(hours: int, seed: int) -> str:
    """Returns a topology in which each event happens once an hour, at the same second of each, 10 to 50
    minutes into the hour.
    """
    rng = random.Random(seed)
    starts = [600 + 400 * place + rng.randint(0, 100) for place in range(len(EVENTS))]
    events = rng.sample(EVENTS, len(EVENTS))
    lines = [
        f"  - {{at: hold + {hour * HOUR_S + start} s, {event}}}"
        for hour in range(hours)
        for start, event in zip(starts, events, strict=True)
    ]
    return TOPOLOGY.replace("HOURS", str(hours)).replace("SEED", str(seed)) + "\n".join(lines) + "\n"


def by_hour(run: Path) -> pl.DataFrame:
    """Returns one row for each hour: messages, those that arrived, their median latency, the
    nodes' memory.
    """
    hour = pl.col("scheduled_ns") // (HOUR_S * 10**9)
    messages = pl.read_parquet(run / "messages.parquet").group_by(hour.alias("hour")).agg(
        pl.len().alias("messages"),
        pl.col("received_ns").is_not_null().sum().alias("arrived"),
        pl.col("latency_ns").median().alias("median_ns"),
    )  # fmt: skip
    nodes = pl.read_parquet(run / "nodes.parquet").group_by(
        (pl.col("t_ns") // (HOUR_S * 10**9)).alias("hour"), "node"
    ).agg(pl.col("memory_bytes").median())  # fmt: skip
    memory = nodes.group_by("hour").agg(pl.col("memory_bytes").sum().alias("memory_bytes"))
    rows = messages.join(memory, on="hour").sort("hour")
    return rows.with_columns(pl.col("hour") - pl.col("hour").min() + 1)


def drifted(hours: pl.DataFrame) -> list[str]:
    """Returns the differences of the later whole hours from the second."""
    whole = hours.filter(pl.col("messages") > pl.col("messages").median() * 0.9)[1:]
    first, found = whole.row(0, named=True), []
    for row in whole.iter_rows(named=True):
        for name in ("messages", "arrived", "median_ns"):
            if abs(row[name] - first[name]) > SAME * first[name]:
                found.append(f"hour {row['hour']}: {name} {row[name]}, hour {first['hour']}: {first[name]}")
        if row["memory_bytes"] - first["memory_bytes"] > GROWN_BYTES:
            found.append(
                f"hour {row['hour']}: {row['memory_bytes'] - first['memory_bytes']} bytes more memory"
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vs") as name:
        case = Case(Path(name), within_s=None)
        (case.base / "soak.yaml").write_text(topology(asked.hours, asked.seed))
        status, said = case.vnet("run", "soak.yaml", "--time", "virtual", "--results", "out", "--raw")
        if status != 0:
            print(said)
            return 1
        (run,) = (case.base / "out").glob("*/*")
        status, said = case.vnet("report", str(run), "--reduce")
        hours = by_hour(run)
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True):
        print(hours)
    found = drifted(hours)
    print("\n".join(found) or f"no hour differs from the second by more than {SAME:.0%}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
