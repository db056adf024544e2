"""Computes test 8: the bytes of each layer for one measurement, packets and bandwidth, from the capture at
each device.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run

# Capture points and traffic classes of reserve-8-efficiency.yaml, in the order of table 4 -> title.
COMBINATIONS = {
    "mqtt-json": "MQTT + JSON",
    "amqp-json": "AMQP + JSON",
    "sv": "Sampled Values",
    "mqtt-protobuf": "MQTT + protobuf",
    "amqp-protobuf": "AMQP + protobuf",
}
# Columns of the table of packets, from the wire up -> title; app_bytes: the protocol that carries payload.
LAYERS = {
    "eth_bytes": "Ethernet",
    "ip_bytes": "IPv4",
    "transport_bytes": "TCP",
    "app_bytes": "protocol",
    "data_bytes": "payload",
}
ETHERNET = "sv"  # the combination without IP


def efficiency_metrics(run: Run) -> list[Metric]:
    """Returns, for each combination of protocol and format, from its capture: packets and bytes of one
    measurement and of the run, the bytes of each layer, and the bandwidth.

    The packets that open and close a connection are included, as in the deliverable; ARP is not. Empty for
    runs without the captures of all combinations.
    """
    messages = run.table("messages")
    if messages is None or not COMBINATIONS.keys() <= run.captures.keys():
        return []
    found: list[Metric] = []
    for name in COMBINATIONS:
        measurements = messages.filter(pl.col("class") == name).unique(["flow", "seq"])
        if not measurements.is_empty():
            found += _of_one(name, run.captures[name], measurements)
    return found


def _of_one(name: str, packets: Path, measurements: pl.DataFrame) -> list[Metric]:
    # Bridges flood Sampled Values to every port, so each capture has those of all devices.
    ours = pl.col("app") == name if name == ETHERNET else pl.col("protocol") == "tcp"
    sums = [pl.col(column).cast(pl.Int64).sum() for column in ("wire_bytes", *LAYERS, "pad_bytes")]
    row = pl.scan_parquet(packets).filter(ours).select(pl.len().alias("packets"), *sums).collect()
    total = {column: int(row[column][0]) for column in row.columns}
    n, of = measurements.height, Of(capture=name)
    due = measurements["scheduled_ns"].sort()
    # From the first measurement to the last, and one interval more.
    seconds = (due[-1] - due[0]) / 1e9 * n / (n - 1) if n > 1 else 0.0
    how = "capture of the whole run, by messages due"
    found = [
        count("measurement_packets", of, total["packets"] / n, "packets", n, how),
        count("measurement_bytes", of, total["wire_bytes"] / n, "B", n, how),
        count("measurement_payload", of, total["data_bytes"] / n, "B", n, how),
        count("efficiency_packets", of, total["packets"], "packets", n, "count"),
        count("efficiency_traffic", of, total["wire_bytes"] / 2**20, "MiB", n, "sum of frame lengths"),
    ]
    for column in LAYERS:
        layer = Of(capture=name, layer=column)
        found.append(count("measurement_layer", layer, total[column] / n, "B", n, how))
    if seconds:
        rate = total["wire_bytes"] * 8 / 1024 / seconds
        found.append(count("efficiency_rate", of, rate, "Kibit/s", n, "over the time of the load"))
    return found
