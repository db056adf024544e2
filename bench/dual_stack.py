"""Compares the cost of a network with both families with that of one, in turns: 350 clients, 10 s.

    python bench/dual_stack.py [--pairs N] [--nodes N] [--hold TIME] [--time real|virtual] [--out FILE]

Each pair is a run of bench/dual_stack.yaml with IPv4 alone and one with IPv4 and IPv6, which take turns at
being first. The benchmark prints the ratio of both families to one for the wall-clock time and for the CPU
time of all processes of a run, as the geometric mean of the pairs with its 95 % interval. With `--time real`
the runs are of the host's kernel; with a short `--hold` they are mostly the making of the lab.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from against import Turn, ratio, turn
from commands import ROOT, as_root

FILE = ROOT / "bench" / "dual_stack.yaml"
FAMILIES = {"one": "10.20.0.0/16", "both": '[10.20.0.0/16, "fd00:20::/64"]'}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=350)
    parser.add_argument("--hold", default="10 s")
    parser.add_argument("--time", choices=("real", "virtual"), default="virtual")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    as_root()
    with tempfile.TemporaryDirectory() as place:
        files = {name: _file(Path(place), name) for name in FAMILIES}
        turns = [_pair(files, options, number) for number in range(-1, options.pairs)][1:]
    rows = []
    for what in ("cpu_s", "wall_s"):
        found = ratio([(getattr(both, what), getattr(one, what)) for both, one in turns])
        medians = [statistics.median(getattr(one, what) for one in side) for side in zip(*turns, strict=True)]
        print(
            f"{options.nodes} clients, {what}: both families {medians[0]:.2f}, one {medians[1]:.2f} s, ratio "
            f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f}), of the least {found.least:.3f}",
            flush=True,
        )
        rows.append({"what": what, **vars(found), "nodes": options.nodes, "turns": len(turns)})
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


def _file(place: Path, name: str) -> Path:
    """Writes the topology with these families, and returns its path."""
    file = place / f"{name}.yaml"
    file.write_text(FILE.read_text().replace(f"subnet: {FAMILIES['one']}", f"subnet: {FAMILIES[name]}"))
    return file


def _pair(files: dict[str, Path], options: argparse.Namespace, number: int) -> tuple[Turn, Turn]:
    """Runs both topologies once, in alternating order; returns (both families, one family)."""
    took = {}
    for name in files if number % 2 else reversed(files):
        words = (
            str(files[name]),
            "-p",
            f"nodes={options.nodes}",
            "-p",
            f"hold={options.hold}",
            "--raw",
            "--time",
            options.time,
        )
        took[name] = turn(ROOT, words)
    return took["both"], took["one"]


if __name__ == "__main__":
    main()
