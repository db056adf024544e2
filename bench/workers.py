"""Measures a campaign on 1, 2 and 3 workers of this machine, with labs that compute (virtual time) and labs
that wait (real time).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from commands import ROOT, VNET, timed

RUNS = 6
WORKERS = (1, 2, 3)
CAMPAIGN = """\
name: bench-workers
seed: 1
campaign: {{topologies: [{topology}], repetitions: {runs}}}
"""
TOPOLOGIES = ROOT / "topologies"
COMPUTE = (
    TOPOLOGIES / "mqtt-many-to-one.yaml",
    ("--time", "virtual", "-p", "hold=300s", "-p", "clients=100", "-p", "connect_interval=20ms"),
)
WAIT = (TOPOLOGIES / "pair.yaml", ("--kernel", "uml", "-p", "hold=10s"))


def seconds(topology: Path, options: tuple[str, ...], *on: str) -> float:
    """Returns the wall-clock seconds of a campaign with the runs' tables and without pages."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "campaign.yaml"
        file.write_text(CAMPAIGN.format(topology=topology, runs=RUNS))
        run = (str(VNET), "campaign", "run", str(file), *options, *on, "--no-page")
        return timed(*run, "--out", f"{place}/campaign")


def rows(name: str, topology: Path, options: tuple[str, ...]) -> list[dict[str, object]]:
    """Returns one row for each number of workers, with the campaign's time divided by that of the same
    campaign without workers.
    """
    alone = seconds(topology, options)
    found = []
    for workers in WORKERS:
        value = seconds(topology, options, "--on", f"local:{workers}")
        peer = f"no engine, {alone:.0f} s"
        of = {"name": f"{RUNS} {name}, workers: {workers}", "value": value, "unit": "s", "peer": peer}
        found.append({**of, "ratio": value / alone})
    return found


def main() -> None:
    print(f"workers.py: {len(os.sched_getaffinity(0))} cores", file=sys.stderr)
    json.dump([*rows("labs that compute", *COMPUTE), *rows("labs that wait", *WAIT)], sys.stdout)


main()
