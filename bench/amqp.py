"""Measures AMQP messages for each second of CPU time through RabbitMQ: vNET's clients against pika's, in
turns.

Only the client's CPU time counts, so that neither the broker nor other work on the machine matters. vNET
publishes persistent messages with confirms at a rate that the broker can take; pika publishes without
confirms as fast as it can.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from commands import ROOT, as_root

sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agent")]

from agent_amqp import BROKER, CONSUME, PUBLISH, exchange, rabbit, spec  # noqa: E402
from agent_launcher import Launcher  # noqa: E402
from agent_roles import flow, item, play  # noqa: E402

RATE, SECONDS, TURNS, SIZE = 2000, 5, 3, 200
COUNT = RATE * SECONDS
PEER = Path(__file__).with_name("amqp_peer.py")
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / TICKS


def ours(launcher: Launcher, pids: dict[str, int], turn: int) -> tuple[float, float]:
    """Returns the messages for each second of CPU time: (published and confirmed, delivered and
    acknowledged).
    """
    before = {name: cpu_s(pids[name]) for name in ("p", "c")}
    sent = {**PUBLISH, "exchange": exchange("ours"), "inflight": 1000, "queue": COUNT}
    got = {**CONSUME, "exchange": exchange("ours"), "queue": f"ours{turn}", "prefetch": 100}
    items = [
        item("amqp", "p", spec(publish=sent), flow(0, "publish", RATE, SECONDS + 1, SIZE, start_ns=10**9)),
        item("amqp", "c", spec(consume=got)),
    ]
    totals = play(launcher, items, SECONDS + 10, launcher.directory / f"messages{turn}.csv")
    assert totals["settled"] == totals["received"] == COUNT, totals
    return COUNT / (cpu_s(pids["p"]) - before["p"]), COUNT / (cpu_s(pids["c"]) - before["c"])


def pika(launcher: Launcher, side: str) -> float:
    argv = [
        "ip",
        "netns",
        "exec",
        launcher.netns("relay"),
        sys.executable,
        str(PEER),
        side,
        BROKER,
        str(COUNT),
    ]
    return COUNT / float(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def rows(launcher: Launcher) -> list[dict[str, Any]]:
    names = ["b", "p", "c", "relay"]
    pids = launcher.create(names)
    launcher.wire(names)
    launcher.socket.settimeout(150)  # the launcher starts slowly on a busy machine
    launcher.do("start", node="b", software=rabbit())
    found: dict[str, list[tuple[float, float]]] = {"published": [], "consumed": []}
    for turn in range(TURNS):
        published, consumed = ours(launcher, pids, turn)
        found["published"].append((published, pika(launcher, "publish")))
        found["consumed"].append((consumed, pika(launcher, "consume")))
    return [
        {
            "name": f"AMQP, messages {what}",
            "value": (value := statistics.median(ours for ours, _ in pairs)),
            "unit": "1/core s",
            "peer": f"pika {(theirs := statistics.median(theirs for _, theirs in pairs)):.0f}",
            "ratio": value / theirs,
        }
        for what, pairs in found.items()
    ]


def main() -> None:
    as_root()
    with tempfile.TemporaryDirectory(prefix="vnet-bench-") as directory:
        launcher = Launcher(Path(directory), f"bench{os.getpid()}")
        try:
            print(json.dumps(rows(launcher)))
        finally:
            launcher.close()


if __name__ == "__main__":
    main()
