"""Times `vnet why` on a run of about 100,000 messages against tshark, which reads the run's one capture with
the same fields of each packet; prints JSON rows.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from commands import ROOT, VNET, timed, tool

import vnet

TOPOLOGY = ROOT / "topologies" / "mqtt-many-to-one.yaml"
LOAD = ("clients=50", "connect_interval=20ms", "rate=1000 /s", "hold=100s")
FIELDS = ("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "tcp.stream", "tcp.seq_raw", "mqtt.msgid")


def main() -> None:
    with tempfile.TemporaryDirectory() as results:
        given = [word for one in LOAD for word in ("-p", one)]
        timed(str(VNET), "run", str(TOPOLOGY), "--time", "virtual", "--results", results, *given)
        (run_dir,) = Path(results).glob("*/*")
        messages = vnet.Run(run_dir).messages.collect().height
        (capture,) = run_dir.glob("pcap/*.pcap")
        fields = [word for field in FIELDS for word in ("-e", field)]
        peer_s = timed(tool("tshark"), "-n", "-r", str(capture), "-T", "fields", *fields)
        why_s = timed(str(VNET), "why", str(run_dir))
    row = {
        "name": f"vnet why, {messages:,} messages",
        "value": why_s,
        "unit": "s",
        "peer": f"tshark's fields of the capture, {peer_s:.0f} s",
        "ratio": why_s / peer_s,
    }
    json.dump([row], sys.stdout)


main()
