"""Measures memory and time of a campaign's page by its number of runs, with copies of four runs in virtual
time.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from commands import ROOT, VNET, timed

from contract import manifest, seal

COUNTS = (10, 100, 1000)
ALLOWED_MB = 1000  # for any number of runs
CAMPAIGN = f"""\
name: campaign-page
seed: 1
campaign:
  topologies: [{ROOT / "topologies" / "mqtt-many-to-one.yaml"}]
  parameters: {{hold: 30 s, clients: 100, connect_interval: 20 ms}}
  factors: {{qos: [0, 1]}}
  repetitions: 2
"""
UNLINKED = ("raw", "pcap")  # directories that no page reads


def multiplied(campaign: Path, count: int, out: Path) -> None:
    """Makes a campaign of `count` runs that are copies of `campaign`'s in turn, each with a seed of its own.

    Their tables are hard links; the page of each run exists but is empty.
    """
    lines = [json.loads(line) for line in (campaign / "cells.jsonl").read_text().splitlines()]
    (out / "runs").mkdir(parents=True)
    if (campaign / "campaign.json").exists():
        shutil.copy(campaign / "campaign.json", out)
    with (out / "cells.jsonl").open("w") as journal:
        for number in range(count):
            line = lines[number % len(lines)]
            again = number // len(lines) * len(lines)
            run_dir = f"runs/{number}"
            line = {**line, "cell": f"{line['cell']}-{number}", "run_dir": run_dir}
            line |= {"repetition": line["repetition"] + again, "seed": line["seed"] + again}
            _run(campaign / lines[number % len(lines)]["run_dir"], out / run_dir, line["seed"])
            journal.write(json.dumps(line) + "\n")


def _run(of: Path, run_dir: Path, seed: int) -> None:
    shutil.copytree(of, run_dir, copy_function=os.link, ignore=shutil.ignore_patterns(*UNLINKED))
    known = manifest.read(run_dir) | {"seed": seed}
    for name in (manifest.NAME, seal.NAME):  # copies, so that the original run stays as it is
        content = (run_dir / name).read_bytes()
        (run_dir / name).unlink()
        (run_dir / name).write_bytes(content)
    manifest.write(run_dir, known)
    page = run_dir / "report" / "index.html"
    page.parent.mkdir(exist_ok=True)
    page.touch()


def reported(campaign: Path) -> tuple[float, float]:
    """Returns the seconds that the campaign's report takes, and the largest memory of its process in MB."""
    from reports.report import campaign_report

    began = time.monotonic()
    if (child := os.fork()) == 0:
        campaign_report(campaign)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"campaign_page.py: the page of {campaign} was not made")
    return time.monotonic() - began, used.ru_maxrss / 1e3


def rows() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        file, made = Path(place) / "campaign.yaml", Path(place) / "made"
        file.write_text(CAMPAIGN)
        timed(str(VNET), "campaign", "run", str(file), "--time", "virtual", "--jobs", "2", "--out", str(made))
        found = []
        for count in COUNTS:
            multiplied(made, count, Path(place) / str(count))
            seconds, megabytes = reported(Path(place) / str(count))
            peer = f"{ALLOWED_MB} MB are allowed; {seconds:.0f} s"
            of = {"name": f"memory of a page of {count} runs", "value": megabytes, "unit": "MB", "peer": peer}
            found.append({**of, "ratio": megabytes / ALLOWED_MB})
        return found


def main() -> None:
    """Measures and prints the rows; with arguments CAMPAIGN COUNT DIR only makes that multiplied campaign."""
    if len(sys.argv) == 4:
        multiplied(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
        return
    json.dump(rows(), sys.stdout)


main()
