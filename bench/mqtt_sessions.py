"""Holds 10,000 MQTT clients of one agent, which publish 2,000 messages a second at QoS 1, beside as many
clients of Eclipse Paho (Go): logins a second, CPU, and lost messages.

Each side runs in a lab of its own, in turns, against a mosquitto of another node on the host's kernel. The
time from the first CONNECT to the last CONNACK is that of the capture at the broker, for both. SECONDS,
SESSIONS and TURNS of the environment change the size; `SECONDS=600 TURNS=1` is the long hold.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from commands import VNET, as_root, reads, timed, tool

from contract import manifest

SESSIONS = int(os.environ.get("SESSIONS", "10000"))
SECONDS = int(os.environ.get("SECONDS", "30"))
TURNS = int(os.environ.get("TURNS", "3"))
RATE, BYTES, CONNECTS = 2000, 100, 5000  # messages a second of all, payload, attempted connections a second
EACH = RATE / SESSIONS
PEER_S = SECONDS + 10
TOPOLOGY = """\
name: bench-sessions
segments: {{lan: {{subnet: 10.20.0.0/24}}}}
nodes:
  broker: {{segment: lan, software: {{b: {{broker: mosquitto, max_queued_messages: 1000000}}}}}}
  reader:
    segment: lan
    software: {{in: {{mqtt: {{broker: broker, subscribe: [{{topic: meter/#, qos: 1}}]}}}}}}
  gateway: {{segment: lan, mounts: {{read: [{directory}]}}, software: {{out: {gateway}}}}}
captures: {{broker: {{at: node broker, snaplen: 128}}}}
run: {{connect_interval: {gap_us} us, hold: {hold} s, drain: 30 s}}
"""
OURS = (
    f'{{mqtt: {{broker: broker, sessions: {SESSIONS}, publish: {{topic: "meter/{{session}}", qos: 1, '
    f"rate: {EACH} /s, rate_of: client, payload: bytes, payload_size: {BYTES} B}}}}}}"
)
THEIRS = (
    '{command: "DIRECTORY/mqtt_peer {{ addresses.broker }}:1883 '
    f'{SESSIONS} {CONNECTS} {BYTES} {EACH} {PEER_S}", start: ramp, at_end: exited}}'
)


def lab(gateway: str, directory: Path, name: str, hold_s: int) -> Path:
    """Runs a lab with this gateway and returns its run directory."""
    file, out = directory / f"{name}.yaml", directory / name
    file.write_text(
        TOPOLOGY.format(
            gateway=gateway.replace("DIRECTORY", str(directory)),
            directory=directory,
            gap_us=round(1e6 / CONNECTS),
            hold=hold_s,
        )
    )
    timed(str(VNET), "run", str(file), "--kernel", "host", "--results", str(out))
    return next(out.glob("bench-sessions/*"))


def connect_rate(run: Path) -> float:
    """Returns the accepted logins a second, from the first CONNECT to the last CONNACK at the broker."""
    packets = pl.scan_parquet(run / "packets" / "broker.parquet").select("t_ns", "app_types")
    types = packets.explode("app_types").filter(pl.col("app_types").is_in(["CONNECT", "CONNACK"])).collect()
    answered = types.filter(pl.col("app_types") == "CONNACK")
    first, last = types.get_column("t_ns").to_list()[0], answered.get_column("t_ns").to_list()[-1]
    return float(answered.height / ((last - first) / 1e9))


def cpu_s(run: Path) -> float:
    """Returns the CPU seconds that the gateway's node used in each second of the hold."""
    begin, end = manifest.load(run).phases["hold"]
    of_gateway = (pl.col("node") == "gateway") & pl.col("t_ns").is_between(begin, end)
    spent = pl.read_parquet(run / "nodes.parquet").filter(of_gateway).get_column("cpu_ns").to_list()
    return float(max(spent) - min(spent)) / float(end - begin)


def counts(run: Path) -> tuple[int, int]:
    """Returns the number of messages, and the number of those that did not arrive or were not
    acknowledged.
    """
    messages = pl.read_parquet(run / "messages.parquet")
    lost = messages.filter(pl.col("received_ns").is_null() | (pl.col("outcome") != "settled"))
    return messages.height, lost.height


def main() -> None:
    as_root()
    with tempfile.TemporaryDirectory(prefix="vnet-bench-", dir="/var/tmp") as temporary:
        directory = Path(temporary)
        directory.chmod(0o755)
        source = Path(__file__).with_name("mqtt_peer")
        reads(tool("go"), "-C", str(source), "build", "-o", str(directory / "mqtt_peer"), ".")
        ours, theirs, cpu, peer_cpu, sent, lost = [], [], [], [], 0, 0
        for turn in range(TURNS):
            run = lab(OURS, directory, f"ours-{turn}", SECONDS)
            ours.append(connect_rate(run))
            cpu.append(cpu_s(run))
            more, gone = counts(run)
            sent, lost = sent + more, lost + gone
            run = lab(THEIRS, directory, f"peer-{turn}", PEER_S)
            theirs.append(connect_rate(run))
            peer_cpu.append(cpu_s(run))
        print(json.dumps(rows(ours, theirs, cpu, peer_cpu, sent, lost)))


def rows(
    ours: list[float], theirs: list[float], cpu: list[float], peer_cpu: list[float], sent: int, lost: int
) -> list[dict[str, Any]]:
    rate, peer_rate = statistics.median(ours), statistics.median(theirs)
    used, peer_used = statistics.median(cpu), statistics.median(peer_cpu)
    return [
        {
            "name": f"MQTT: logins of {SESSIONS} clients",
            "value": rate,
            "unit": "/s",
            "peer": f"Eclipse Paho (Go), {peer_rate:.0f} /s",
            "ratio": rate / peer_rate,
        },
        {
            "name": f"MQTT: CPU of {SESSIONS} clients, {RATE} /s",
            "value": used,
            "unit": "s/s",
            "peer": f"Eclipse Paho (Go), {peer_used:.3f} s/s",
            "ratio": used / peer_used,
        },
        {
            "name": f"MQTT: lost of {sent} messages at QoS 1",
            "value": lost,
            "unit": "messages",
            "peer": "all",
            "ratio": lost / sent,
        },
    ]


if __name__ == "__main__":
    main()
