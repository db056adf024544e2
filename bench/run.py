"""Runs the benchmarks of SCRIPTS, or those named, prints one table, and writes bench.json: a list of {name,
value, unit, peer, ratio}.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent
SCRIPTS = (
    "bringup.py",
    "grid.py",
    "placement.py",
    "sandbox.py",
    "reduce.py",
    "why.py",
    "overhead.py",
    "memory.py",
    "virtual.py",
    "virtual_sandbox.py",
    "frames.py",
    "messages.py",
    "mqtt_sessions.py",
    "mqtt_connections.py",
    "gateway.py",
    "cooperation.py",
    "amqp.py",
    "sampled_values.py",
    "page.py",
    "vm.py",
)


def measure(script: str) -> list[dict[str, Any]] | None:
    """Returns the rows that one benchmark prints, or None if it failed; each runs in its own process, so that
    none warms up another.
    """
    print(f"bench: {script}", file=sys.stderr)
    done = subprocess.run([sys.executable, str(BENCH / script)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'what':<40} {'value':>14} {'unit':<12} {'ratio':>8}  against"]
    lines += [
        f"{r['name']:<40} {r['value']:>14.4g} {r['unit']:<12} {r['ratio']:>8.3g}  {r['peer']}" for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("scripts", nargs="*", default=SCRIPTS)
    options = parser.parse_args()
    measured = {script: measure(script) for script in options.scripts}
    rows = [row for found in measured.values() for row in found or []]
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    if failed := [script for script, found in measured.items() if found is None]:
        raise SystemExit(
            f"bench: {', '.join(failed)} failed, as said above; {options.out} has what the others measured"
        )


main()
