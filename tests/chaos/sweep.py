"""Runs each scene under each kind of fault for `make chaos`, at moments from a seed, and prints
the outcomes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cases import BROKEN, NO_FAULT, SCENES, WITHIN_S, tried
from far import far_run
from faults import faults

OUTCOMES = ("done", "failed", "killed", BROKEN)


def table(found: dict[tuple[str, str], Counter[str]]) -> str:
    """Returns the outcomes by scene and kind of fault as a Markdown table."""
    lines = [
        "| under a fault | fault | done | failed with a reason | killed | not held |",
        "|---|---|---|---|---|---|",
    ]
    for (scene, kind), counted in sorted(found.items()):
        cells = (str(counted[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {scene} | {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--within", type=float, default=WITHIN_S, help="seconds that a command may take")
    parser.add_argument("--scene", action="append", help="only these")
    asked = parser.parse_args()
    outcomes: dict[tuple[str, str], Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="vc") as name, far_run(Path(name)) as far:
        known = {**SCENES, far.name: far}
        if unknown := set(asked.scene or ()) - set(known):
            parser.error(f"no such scene: {', '.join(unknown)}; there are: {', '.join(known)}")
        scenes = [known[name] for name in asked.scene or known]
        for scene in scenes:
            if why := scene.why_not():
                print(f"{scene.name}: left out: {why}")
        scenes = [scene for scene in scenes if not scene.why_not()]
        end = time.monotonic() + asked.seconds
        for number, fault in enumerate(faults(asked.seed)):
            bearing = [scene for scene in scenes if scene.bears(fault)]
            if not bearing:
                continue
            scene = bearing[number % len(bearing)]
            outcome = tried(scene, fault, Path(name), asked.within)
            if outcome == NO_FAULT:
                print(f"{scene.name}, {fault}: left out: no kernel does that", flush=True)
                continue
            outcomes.setdefault((scene.name, fault.name), Counter())[outcome.partition(":")[0]] += 1
            if outcome.startswith(BROKEN):
                print(f"{scene.name}, {fault}: {outcome}", flush=True)
            if time.monotonic() > end:
                break
    print(table(outcomes))
    return any(counted[BROKEN] for counted in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
