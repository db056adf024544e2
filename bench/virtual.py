"""Measures virtual time against real time: the wall-clock time of a lab's run against the time that passes in
the lab.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from commands import ROOT, VNET, timed

from contract import manifest

TOPOLOGY = ROOT / "topologies" / "mqtt-many-to-one.yaml"
BAYS = ROOT / "topologies" / "papers" / "substation-bays.yaml"
CHEAP = "VNET_SYSCALL_COST=100ns"  # programs take almost no time, so that the links dominate
MINUTES = (
    "hold=120s",
    "connect_interval=100ms",
)  # scenario 1 has 900 s and 200 ms; these are shorter, to limit the benchmark's time
HOUR = ("hold=3600s", "rate=2/s", "connect_interval=20ms")
CAMPAIGN = Path(__file__).with_suffix(".yaml")
PAIR = ("hold=60s", "clients=100", "connect_interval=20ms")


def words(parameters: tuple[str, ...]) -> list[str]:
    return [word for parameter in parameters for word in ("-p", parameter)]


def on_one_core(topology: Path, parameters: tuple[str, ...] = (), *cost: str) -> tuple[float, float]:
    """Returns the wall-clock seconds of the whole `vnet run` on one core, and the seconds that its ramp and
    hold last in the lab.

    `cost` is VNET_SYSCALL_COST=... if it is not the usual one.
    """
    core = str(max(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as out:
        run = ("taskset", "-c", core, "env", *cost, str(VNET), "run", str(topology), "--time", "virtual")
        wall = timed(*run, "--results", out, *words(parameters))
        spans = manifest.load(next(Path(out).rglob(manifest.NAME)).parent).phases
    return wall, sum((spans[p][1] - spans[p][0]) / 1e9 for p in ("ramp", "hold"))


def campaign(jobs: int) -> float:
    """Returns the seconds of two runs with tables and pages, `jobs` at a time, each lab on a core
    of its own.
    """
    with tempfile.TemporaryDirectory() as out:
        run = (str(VNET), "campaign", "run", str(CAMPAIGN), "--time", "virtual", "--jobs", str(jobs))
        return timed(*run, "--out", f"{out}/campaign", *words(PAIR))


def row(name: str, value: float, peer: str, peer_value: float) -> dict[str, object]:
    return {"name": name, "value": value, "unit": "s", "peer": peer, "ratio": value / peer_value}


def main() -> None:
    minutes, lasts = on_one_core(TOPOLOGY, MINUTES)
    hour, hour_lasts = on_one_core(TOPOLOGY, HOUR)
    bays, bays_last = on_one_core(BAYS, (), CHEAP)
    apart, together = campaign(jobs=1), campaign(jobs=2)
    rows = [
        row("virtual: scenario 1, 350 clients, one core", minutes, f"real time, {lasts:.0f} s", lasts),
        row("virtual: 1 hour at 2 msg/s, one core", hour, f"real time, {hour_lasts:.0f} s", hour_lasts),
        row(
            "virtual: ten bays, 135,400 messages/s, one core",
            bays,
            f"real time, {bays_last:.0f} s",
            bays_last,
        ),
        row("virtual: campaign of 2 runs, --jobs 2", together, f"--jobs 1, {apart:.0f} s", apart),
    ]
    json.dump(rows, sys.stdout)


main()
