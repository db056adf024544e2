"""Compares the CPU time of a run in virtual time with the captures that `vnet why` reads to the same run
without a capture, in turns.

    python bench/stamps.py [--pairs N]

Each case is a shipped topology, with captures of 96 bytes a frame at the sender, the broker or server, the
receiver and each link with a rate, as docs/why.md requires. Tables and page are left out (`--raw`). Prints
JSON rows: the geometric mean of the pairs' ratios with its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from against import ratio, turn
from commands import ROOT, as_root
from ruamel.yaml import YAML

SNAPLEN = 96
# The parameters of each topology and the places of its captures.
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dumbbell": (("hold=20s",), ("node s1", "node s2", "node d1", "node d2", "link bottleneck")),
    "mqtt-many-to-one": (
        ("clients=50", "rate=100 /s", "hold=60s"),
        ("node client1", "node broker", "node subscriber"),
    ),
}


def written(name: str, places: tuple[str, ...], into: Path) -> Path:
    """Writes a shipped topology with captures at these places only and returns the file's path."""
    yaml = YAML(typ="safe")
    data: dict[str, Any] = yaml.load(ROOT / f"topologies/{name}.yaml")
    data.pop("campaign", None)
    data["captures"] = {
        f"c{number}": {"at": place, "snaplen": SNAPLEN} for number, place in enumerate(places)
    }
    path = into / f"{name}-{len(places)}.yaml"
    yaml.dump(data, path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    as_root()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for name, (parameters, places) in CASES.items():
            given = [word for one in parameters for word in ("-p", one)]
            with_them, without = (
                [str(written(name, chosen, Path(place))), "--time", "virtual", *given, "--raw"]
                for chosen in (places, ())
            )
            turns = []
            for number in range(options.pairs):
                order = (with_them, without) if number % 2 == 0 else (without, with_them)
                took = {words[0]: turn(ROOT, words) for words in order}
                turns.append((took[with_them[0]].cpu_s, took[without[0]].cpu_s))
            found = ratio(turns)
            rows.append({
                "name": f"captures for vnet why: {name}, {len(places)} places",
                "value": min(mine for mine, _ in turns),
                "unit": "s of CPU",
                "peer": f"the run without captures (95 %: {found.low:.3f} to {found.high:.3f})",
                "ratio": found.mean,
            })  # fmt: skip
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
