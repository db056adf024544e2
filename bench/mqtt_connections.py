"""Holds 100,000 MQTT connections on one machine: gateways with as many sessions as one process may have open
files, each at a mosquitto of its own, on the host's kernel.

Prints the logins a second, the memory of each connection at both ends, and the lost messages. CONNECTIONS and
SECONDS of the environment change the size.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from commands import VNET, as_root, left_out, timed

from contract import manifest

CONNECTIONS = int(os.environ.get("CONNECTIONS", "100000"))
SECONDS = int(os.environ.get("SECONDS", "60"))
CONNECTS, RATE = 2000, 2000  # attempted connections a second, and messages a second, of all
PORTS = 28_000  # of one address: net.ipv4.ip_local_port_range
SPARE_FILES = 500  # files of a process besides its connections: its log, its sockets to the node
NODES = """\
  broker{n}: {{segment: lan, software: {{b: {{broker: mosquitto, max_queued_messages: 1000000}}}}}}
  reader{n}:
    segment: lan
    software: {{in: {{mqtt: {{broker: broker{n}, subscribe: [{{topic: meter/#, qos: 1}}]}}}}}}
  gateway{n}:
    segment: lan
    software:
      out:
        mqtt:
          broker: broker{n}
          sessions: {sessions}
          publish:
            topic: "meter/{{session}}"
            qos: 1
            rate: {each:.4f} /s
            rate_of: client
            payload: bytes
            payload_size: 100 B
"""


def topology(pairs: int, sessions: int) -> str:
    """Returns a topology of so many brokers, each with a gateway of so many sessions."""
    nodes = "".join(
        NODES.format(n=n + 1, sessions=sessions, each=RATE / (pairs * sessions)) for n in range(pairs)
    )
    return (
        f"name: bench-connections\nsegments: {{lan: {{subnet: 10.20.0.0/24}}}}\nnodes:\n{nodes}"
        f"run: {{connect_interval: {round(1e6 / CONNECTS)} us, hold: {SECONDS} s, drain: 30 s}}\n"
    )


def memory(run: Path, node: str) -> float:
    """Returns the sum of the largest memory (bytes) of each node whose name begins with `node`."""
    of_nodes = pl.read_parquet(run / "nodes.parquet").filter(pl.col("node").str.starts_with(node))
    most = of_nodes.group_by("node").agg(pl.col("memory_bytes").max())
    return float(sum(most.get_column("memory_bytes").to_list()))


def main() -> None:
    as_root()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    pairs = -(-CONNECTIONS // min(PORTS, limit - SPARE_FILES))
    if pairs > 80:
        left_out(f"one process may open {limit} files only, so it takes {pairs} brokers; raise `ulimit -Hn`")
    sessions = -(-CONNECTIONS // pairs)
    with tempfile.TemporaryDirectory(prefix="vnet-bench-", dir="/var/tmp") as temporary:
        file, out = Path(temporary) / "connections.yaml", Path(temporary) / "run"
        file.write_text(topology(pairs, sessions))
        timed(str(VNET), "run", str(file), "--kernel", "host", "--raw", "--out", str(out))
        timed(str(VNET), "report", str(out))
        print(json.dumps(rows(out, pairs, sessions)))


def rows(run: Path, pairs: int, sessions: int) -> list[dict[str, Any]]:
    records = pl.read_parquet(run / "sessions.parquet").filter(pl.col("endpoint").str.starts_with("gateway"))
    connected = records.filter(pl.col("what") == "connected").get_column("t_ns").to_list()
    begun = records.filter(pl.col("what") == "connecting").get_column("t_ns").to_list()
    end_ns = manifest.load(run).phases["hold"][1]
    lost = records.filter((pl.col("what") == "disconnected") & (pl.col("t_ns") < end_ns)).height
    messages = pl.read_parquet(run / "messages.parquet")
    unsettled = messages.filter(pl.col("received_ns").is_null() | (pl.col("outcome") != "settled")).height
    count, at = pairs * sessions, f"{pairs} gateways at {pairs} brokers"
    rate = len(connected) / ((max(connected) - min(begun)) / 1e9)
    of_gateways, of_brokers = memory(run, "gateway") / count, memory(run, "broker") / count
    return [
        _row(f"MQTT: logins of {count} clients", rate, "/s", at, rate / 1000),
        _row(f"MQTT: memory of each of {count} clients", of_gateways, "B", at, 0.0),
        _row("MQTT: memory of each at its broker", of_brokers, "B", at, 0.0),
        _row("MQTT: connections lost or never accepted", lost + count - len(connected), "", f"{count}", 0.0),
        _row(f"MQTT: lost of {messages.height} messages at QoS 1", unsettled, "messages", "all", 0.0),
    ]


def _row(name: str, value: float, unit: str, peer: str, ratio: float) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "peer": peer, "ratio": ratio}


if __name__ == "__main__":
    main()
