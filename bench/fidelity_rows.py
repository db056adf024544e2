"""Reads the figures of docs/fidelity.md from a run of bench/fidelity_page.yaml: vNET's, and those of the
program or formula beside it.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from commands import reads

FRAME_BYTES = 1250  # a frame on link `mdone`: 1,208 B of payload, 42 B of headers
MD1_BPS, ARRIVALS_PER_S = 2_500_000, 125  # rate and messages of link `mdone`: a load of one half
BURST_BPS = 1_000_000  # rate of link `burst`
BURST, BURST_FRAME_BYTES = 20, 1000
LOSS, ROUND_TRIP_S, RTO_S = 0.01, 0.040, 0.240  # of link `padhye`; Linux's least timeout is 200 ms more
SEGMENT_BYTES = 1448


@dataclass(frozen=True)
class Pair:
    """vNET's figure and the other one, in the same unit."""

    ours: float
    theirs: float


@dataclass(frozen=True)
class Row:
    """A figure: its values in real and in virtual time, and the largest difference allowed, relative to the
    other program's. `impaired`: it needs delay, loss or rate of a link.
    """

    key: str
    figure: str
    unit: str
    against: str
    bound: float
    read: Callable[[Path], Pair]
    impaired: bool = True

    def holds(self, pair: Pair) -> bool:
        return abs(pair.ours - pair.theirs) <= self.bound * abs(pair.theirs)


def log(run: Path, program: str) -> str:
    return (run / "raw" / "logs" / f"{program}.log").read_text()


def messages(run: Path, sender: str) -> pl.DataFrame:
    return pl.read_parquet(run / "messages.parquet").filter(pl.col("sender") == sender)


def last(run: Path, table: str, **of: str) -> dict[str, int]:
    """Returns the last sample of a table's rows with these values."""
    rows = pl.read_parquet(run / f"{table}.parquet").filter(**of).sort("t_ns")
    return rows.row(-1, named=True)


def round_trip(run: Path) -> Pair:
    times = [float(found) for found in re.findall(r"time=([0-9.]+) ms", log(run, "ping.ping"))][1:]
    return Pair(float(messages(run, "ask")["round_trip_ns"].median() or 0) / 1e6, statistics.median(times))  # type: ignore[arg-type]


def transferred(run: Path) -> Pair:
    """Returns, in Mbit/s, the payload per second in a capture without retransmissions, and the count of
    iperf3's receiver.

    The count of iperf3's sender is larger: it writes into a buffer that it gives up at the end. The first
    segment is left out: it has only a cookie, and comes before the test begins.
    """
    end = json.loads(log(run, "iperf-c.iperf"))["end"]
    packets = pl.read_parquet(run / "packets" / "iperf.parquet")
    data = packets.filter((pl.col("dst_port") == 5201) & (pl.col("payload_bytes") > 0))
    main = data.filter(stream=data["stream"].mode()[0]).unique(["seq"]).sort("t_ns")[1:]
    seconds = (main["t_ns"][-1] - main["t_ns"][0]) / 1e9
    ours = 8 * int(main["payload_bytes"][1:].sum()) / seconds
    return Pair(ours / 1e6, end["sum_received"]["bits_per_second"] / 1e6)


def queue(counter: str) -> Callable[[Path], Pair]:
    def read(run: Path) -> Pair:
        (root,) = [q for q in json.loads(log(run, "count-a.tc")) if q.get("root")]
        return Pair(last(run, "links", link="count", direction="forward")[counter], root[counter])

    return read


def interface(run: Path) -> Pair:
    (line,) = [one for one in log(run, "count-a.proc").splitlines() if one.strip().startswith("eth0:")]
    return Pair(last(run, "nodes", node="count-a")["tx_bytes"], int(line.split(":")[1].split()[8]))


def dissected(column: str, field: str) -> Callable[[Path], Pair]:
    """Returns a reader of the sum of a column of the capture's table, and of the field that tshark shows."""

    def read(run: Path) -> Pair:
        shown = reads("tshark", "-r", str(run / "pcap" / "iperf.pcap"), "-T", "fields", "-e", field)
        values = [int(line) for line in shown.split()]
        table = pl.read_parquet(run / "packets" / "iperf.parquet")
        ours = table.height if column == "" else int(table[column].sum())
        return Pair(ours, len(values) if column == "" else sum(values))

    return read


def published(run: Path) -> Pair:
    return Pair(messages(run, "mouth").height, int(log(run, "sys.sub").split()[-1]))


def md1(run: Path) -> Pair:
    """Returns the mean latency of Poisson arrivals through a rate, and M/D/1's: S + rho S / (2 (1 - rho)), in
    ms.
    """
    service = 8 * FRAME_BYTES / MD1_BPS
    load = ARRIVALS_PER_S * service
    expected = service + load * service / (2 * (1 - load))
    return Pair(float(messages(run, "mdone-a")["latency_ns"].mean() or 0) / 1e6, 1e3 * expected)  # type: ignore[arg-type]


def lindley(run: Path) -> Pair:
    """Returns, in ms, the mean latency of the same messages, and the result of Lindley's recursion for the
    times at which they left.
    """
    rows = messages(run, "mdone-a").drop_nulls("latency_ns").sort("sent_ns")
    service, free, total = 8e9 * FRAME_BYTES / MD1_BPS, 0.0, 0.0
    for due, sent in rows.select("scheduled_ns", "sent_ns").iter_rows():
        free = max(free, sent) + service
        total += free - due
    return Pair(float(rows["latency_ns"].mean() or 0) / 1e6, total / rows.height / 1e6)  # type: ignore[arg-type]


def burst(run: Path) -> Pair:
    slowest = messages(run, "burst-a").group_by("scheduled_ns").agg(pl.col("latency_ns").max())
    ours = float(slowest["latency_ns"].median() or 0) / 1e6  # type: ignore[arg-type]
    return Pair(ours, 1e3 * BURST * BURST_FRAME_BYTES * 8 / BURST_BPS)


def padhye(run: Path) -> Pair:
    """Returns the mean goodput of a Reno transfer with loss, and Padhye's (equation 30), in Mbit/s. Its b is
    1: Linux lets the window grow by the segments that an acknowledgement covers (tcp_reno_cong_avoid).
    """
    rows = pl.read_parquet(run / "transfers.parquet").filter(sender="padhye-a", leg=1)
    ours = float(rows["bps"].drop_nulls().mean() or 0) / 1e6  # type: ignore[arg-type]
    timeouts = RTO_S * min(1.0, 3 * math.sqrt(3 * LOSS / 8)) * LOSS * (1 + 32 * LOSS**2)
    per_s = 1 / (ROUND_TRIP_S * math.sqrt(2 * LOSS / 3) + timeouts)
    return Pair(ours, per_s * SEGMENT_BYTES * 8 / 1e6)


PACKETS, BYTES = dissected("", "frame.number"), dissected("wire_bytes", "frame.len")
ROWS: tuple[Row, ...] = (
    Row("round-trip", "median round trip", "ms", "ping", 0.02, round_trip),
    Row("transfer", "goodput over 10 Mbit/s", "Mbit/s", "iperf3", 0.01, transferred),
    Row("queue-bytes", "bytes through a queue", "B", "`tc -s`", 0.0, queue("bytes")),
    Row("queue-packets", "packets through a queue", "", "`tc -s`", 0.0, queue("packets")),
    Row("interface", "bytes that a node sent", "B", "/proc/net/dev", 0.0, interface, impaired=False),
    Row("capture-packets", "captured packets", "", "tshark", 0.0, PACKETS, impaired=False),
    Row("capture-bytes", "captured bytes", "B", "tshark", 0.0, BYTES, impaired=False),
    Row("published", "published messages", "", "`$SYS` of mosquitto", 0.0, published, impaired=False),
    Row("lindley", "mean latency of Poisson arrivals", "ms", "Lindley's recursion", 0.01, lindley),
    Row("md1", "mean latency of Poisson arrivals", "ms", "M/D/1", 0.15, md1),
    Row("burst", "the last of a burst", "ms", "burst through a rate", 0.01, burst),
    Row("padhye", "goodput of Reno, 1 % loss", "Mbit/s", "Padhye et al.", 0.3, padhye),
)
