"""Counts the runs that are marked suspect on a quiet machine: small labs in real time, one after the other.

    .venv/bin/python bench/quiet.py [--runs 200] [--results DIR]

Nothing else may run on the machine. All labs run first, so that no reduction disturbs a lab; then each run is
reduced, and its findings are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from commands import VNET

from contract import manifest

LABS = (
    ("pair.yaml",),
    ("mqtt-many-to-one.yaml", "-p", "clients=20", "-p", "connect_interval=20ms"),
)


def measured(number: int, out: Path) -> Path:
    """Runs lab number `number` without reducing it and returns its run directory."""
    topology, *parameters = LABS[number % len(LABS)]
    argv = [str(VNET), "run", f"topologies/{topology}", *parameters, "-p", "hold=2s", "--raw", "--json"]
    argv += ["--seed", str(number), "--lab", f"quiet{number}", "--results", str(out)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    return Path(json.loads(done.stdout)["run_dir"])


def findings(run: Path) -> list[str]:
    """Reduces a run and returns the warnings that make it suspect; empty for a run that is not suspect."""
    subprocess.run([str(VNET), "report", str(run)], stdout=subprocess.DEVNULL, check=True)
    found = manifest.load(run)
    return [str(warning) for warning in found.warnings] if found.suspect else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--results", type=Path, default=None)
    options = parser.parse_args()
    out = options.results or Path(tempfile.mkdtemp(prefix="vnet-quiet-"))
    runs = [measured(number, out) for number in range(options.runs)]
    marked = {run: found for run in runs if (found := findings(run))}
    for run, found in marked.items():
        print(run, *found, sep="\n    ")
    print(f"{len(marked)} of {len(runs)} runs marked suspect")


if __name__ == "__main__":
    main()
