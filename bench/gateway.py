"""Measures the packets a second that a router forwards: by the kernel alone, with queue classes, with a
gateway, and by the gateway itself.

iperf3 sends short datagrams as fast as it can over a forwarding node in the host's kernel, and the receiver's
interface counts them. For the gateway that forwards itself, the packets for each second of its CPU time are
computed too, because sender and receiver compete for the same cores.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from commands import VNET, as_root, timed

from contract import manifest

BYTES, SECONDS, TURNS = 218, 5, 3
TOPOLOGY = """\
name: bench-gateway
segments: {{a: {{subnet: 10.20.0.0/24}}, b: {{subnet: 10.21.0.0/24}}}}
nodes:
  sender:
    segment: a
    software:
      out: {{command: "iperf3 -u -c {{{{ addresses.receiver }}}} -l {bytes} -b 0 -t {seconds}", start: hold}}
  near: {{segment: a, forward: true, software: {software}}}
  far: {{segment: b, forward: true}}
  receiver: {{segment: b, software: {{in: {{command: "iperf3 -s", ready: {{tcp: 5201}}}}}}}}
links:
  wan: {{between: [near, far]{queue}}}
run: {{hold: {seconds} s, drain: 2 s}}
"""
QUEUE = (
    ", forward: {rate: 8 Gbit/s, queue: {htb: {load: {port: 5201, rate: 7 Gbit/s, ceil: 7 Gbit/s}, "
    "rest: {rate: 10 Mbit/s}}}}"
)
GATEWAY = (
    "{gateway: {gateway: {link: wan, period: 100 ms, flows: "
    "{load: {service: best-effort, group: a, minimum: 1 Gbit/s%s}}}}}"
)
OVERLAY = ", overlay: {flows: [{port: 5201, deadline: 10 ms}]}"
LABS = {
    "kernel": ("{}", ""),
    "classes": ("{}", QUEUE),
    "gateway": (GATEWAY % "", QUEUE),
    "overlay": (GATEWAY % OVERLAY, QUEUE),
}
TITLES = {
    "classes": "forwarded through classes",
    "gateway": "forwarded by the kernel that a gateway governs",
    "overlay": "forwarded by a gateway itself, EDF",
    "a core": "the same, in a second of its CPU",
}


@dataclass(frozen=True, slots=True)
class Found:
    """The packets a second at the receiver's interface, and the cores that the router's programs used."""

    packets_per_s: float
    cores: float


def let_through(name: str, turn: int, directory: Path) -> Found:
    software, queue = LABS[name]
    file, out = directory / f"{name}-{turn}.yaml", directory / f"{name}-{turn}"
    file.write_text(TOPOLOGY.format(bytes=BYTES, seconds=SECONDS, software=software, queue=queue))
    timed(str(VNET), "run", str(file), "--kernel", "host", "--results", str(out))
    run = next(out.glob("bench-gateway/*"))
    begin, end = manifest.load(run).phases["hold"]
    nodes = pl.read_parquet(run / "nodes.parquet").filter(pl.col("t_ns").is_between(begin, end))
    return Found(_a_second(nodes, "receiver", "rx_packets"), _a_second(nodes, "near", "cpu_ns") / 1e9)


def _a_second(nodes: pl.DataFrame, node: str, counter: str) -> float:
    """Returns the growth of a node's counter per second."""
    seen = nodes.filter(pl.col("node") == node)
    times, counts = seen.get_column("t_ns").to_list(), seen.get_column(counter).to_list()
    found: float = (max(counts) - min(counts)) / (max(times) - min(times)) * 1e9
    return found


def main() -> None:
    as_root()
    with tempfile.TemporaryDirectory(prefix="vnet-bench-") as temporary:
        directory = Path(temporary)
        directory.chmod(0o755)
        found: dict[str, list[Found]] = {name: [] for name in LABS}
        for turn in range(TURNS):
            for name in LABS:
                found[name].append(let_through(name, turn, directory))
    medians = {name: statistics.median(one.packets_per_s for one in found[name]) for name in LABS}
    medians["a core"] = statistics.median(one.packets_per_s / one.cores for one in found["overlay"])
    kernel = medians["kernel"]
    rows: list[dict[str, Any]] = [
        {
            "name": title,
            "value": medians[name] / 1000,
            "unit": "k packets/s",
            "peer": f"the kernel's forwarding alone, {kernel / 1000:.0f} k/s",
            "ratio": medians[name] / kernel,
        }
        for name, title in TITLES.items()
    ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
