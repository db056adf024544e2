"""Sends 20,000 messages a second by UDP, ZeroMQ and C37.118: the share of late ones, and CPU against iperf3
and libzmq.

Messages go from one node to another on a segment of the host's kernel, in a lab of its own for each protocol.
vNET accounts for each message, the peers do not. CPU is that of the sender's node in the hold. A message is
late if it leaves more than 1 ms after its scheduled time.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from commands import VNET, as_root, reads, timed, tool

from contract import manifest

RATE, SECONDS, BYTES, TURNS = 20_000, 5, 200, 3
LATE_NS = 1_000_000
COUNT = RATE * SECONDS
TOPOLOGY = """\
name: bench-messages
segments: {{lan: {{subnet: 10.20.0.0/24}}}}
nodes:
  receiver: {{segment: lan, mounts: {{read: [{directory}]}}, software: {{in: {receiver}}}}}
  sender: {{segment: lan, mounts: {{read: [{directory}]}}, software: {{out: {sender}}}}}
run: {{connect_interval: 100 ms, hold: {seconds} s, drain: 3 s}}
"""
LOAD = f"{{size: {BYTES} B, rate: {RATE} /s, rate_of: client}}"
TO = "{{ addresses.receiver }}"
IPERF3 = (
    '{command: "iperf3 -s", ready: {tcp: 5201}}',
    f'{{command: "iperf3 -u -c {TO} -l {BYTES} -b {RATE * BYTES * 8} -t {SECONDS}", start: hold}}',
)
STATION = "listen: 4713, transport: udp, phasors: 20, analogs: 2"  # 198 B a frame
KINDS = {  # software of the receiver and of the sender with vNET, then of both with the peer
    "UDP": (
        "{udp: {listen: 9000}}",
        f"{{udp: {{to: receiver, push: {LOAD}}}}}",
        *IPERF3,
    ),
    "C37.118": (
        "{synchrophasor: {to: sender}}",
        f"{{synchrophasor: {{{STATION}, data: {{rate: {RATE} /s, rate_of: client}}}}}}",
        *IPERF3,
    ),
    "ZeroMQ": (
        "{zeromq: {dealer: sender}}",
        f"{{zeromq: {{router: 5555, send_queue: {COUNT}, push: {LOAD}}}}}",
        f'{{command: "PROGRAM receive tcp://*:5555 {COUNT}", ready: {{tcp: 5555}}}}',
        f'{{command: "PROGRAM send tcp://{TO}:5555 {COUNT} {BYTES} {RATE}", start: hold}}',
    ),
}
PEERS = {"UDP": "iperf3", "C37.118": "iperf3", "ZeroMQ": "libzmq by itself"}


def lab(receiver: str, sender: str, directory: Path, name: str) -> Path:
    """Runs a lab with these two programs and returns its run directory."""
    file, out = directory / f"{name}.yaml", directory / name
    program = str(directory / "zeromq_peer")
    text = TOPOLOGY.format(receiver=receiver, sender=sender, seconds=SECONDS, directory=directory)
    file.write_text(text.replace("PROGRAM", program))
    timed(str(VNET), "run", str(file), "--kernel", "host", "--results", str(out))
    return next(out.glob("bench-messages/*"))


def sender_cpu_s(run: Path) -> float:
    """Returns the CPU seconds that the sender's node used in the hold."""
    begin, end = manifest.load(run).phases["hold"]
    of_sender = (pl.col("node") == "sender") & pl.col("t_ns").is_between(begin, end)
    spent = pl.read_parquet(run / "nodes.parquet").filter(of_sender).get_column("cpu_ns").to_list()
    return float(max(spent) - min(spent)) / 1e9


def late_share(run: Path) -> float:
    messages = pl.read_parquet(run / "messages.parquet")
    late = messages.filter(
        pl.col("sent_ns").is_null() | (pl.col("sent_ns") - pl.col("scheduled_ns") > LATE_NS)
    )
    return late.height / messages.height


def rows(kind: str, directory: Path) -> list[dict[str, Any]]:
    receiver, sender, peer_receiver, peer_sender = KINDS[kind]
    ours, theirs, late = [], [], []
    for turn in range(TURNS):
        run = lab(receiver, sender, directory, f"{kind}-{turn}")
        ours.append(sender_cpu_s(run))
        late.append(late_share(run))
        theirs.append(sender_cpu_s(lab(peer_receiver, peer_sender, directory, f"{kind}-peer-{turn}")))
    cpu, peer_cpu = statistics.median(ours), statistics.median(theirs)
    return [
        {
            "name": f"{kind}: CPU of {RATE} messages",
            "value": cpu / SECONDS,
            "unit": "s",
            "peer": f"{PEERS[kind]}, {peer_cpu / SECONDS:.3f} s",
            "ratio": cpu / peer_cpu,
        },
        {
            "name": f"{kind}: late at {RATE} /s",
            "value": (share := 100 * statistics.median(late)),
            "unit": "%",
            "peer": "all",
            "ratio": share / 100,
        },
    ]


def main() -> None:
    as_root()
    with tempfile.TemporaryDirectory(prefix="vnet-bench-") as temporary:
        directory = Path(temporary)
        directory.chmod(0o755)
        source = Path(__file__).with_name("zeromq_peer.c")
        reads(tool("gcc"), "-O2", "-o", str(directory / "zeromq_peer"), str(source), "-l:libzmq.so.5")
        print(json.dumps([row for kind in KINDS for row in rows(kind, directory)]))


if __name__ == "__main__":
    main()
