"""Says which published examples are stale: one cell of each, run again, gives other files or figures.

    fresh.py [NAME...]         runs the recorded cell of each example, names those that are stale, and ends
                               with status 1 if there are any (`make examples-check`)
    fresh.py --within SECONDS  of the cells, only those of the cheapest that took so long together

`made.json` of an example has its cheapest cell: topology, parameters, seed, the hashes of what the lab sent
and recorded, and a hash of each metric's values. A changed docstring or page changes none of them; a new
metric is no difference, nor is memory, which moves with each build of the agent. An example without a
recorded cell, or marked as stale in made.json, is stale. Where a package or the kernel of this machine is of
another version than the example's, a difference proves nothing: it cannot be told here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reports.metrics.metric import read

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VNET = Path(sys.executable).parent / "vnet"
OURS = ("agent", "code", "closed root")  # inputs that this tree makes: they may move an example
FILES = ("pcap/", "raw/")  # what the lab sent and recorded; the other files of a run are made from it
# A build of the agent has its code on other pages than the one before, so its memory differs by pages.
# The CPU time in nodes.csv is compared as a metric.
BY_BUILD = {"raw/nodes.csv", "memory"}
DIGITS = 16


@dataclass(frozen=True)
class Cell:
    """A run of an example, and what it gave."""

    name: str
    topology: str
    parameters: dict[str, Any]
    seed: int
    environment: dict[str, str]
    seconds: float  # that it took, on the machine of then
    files: dict[str, str]  # SHA-256
    figures: dict[str, str]  # the first digits of the SHA-256 of each metric's values

    def differing(self, files: dict[str, str], figures: dict[str, str]) -> list[str]:
        """The names of files and metrics that another run of the cell gives otherwise, or not at all, except
        BY_BUILD.
        """
        of_files = [
            name for name in self.files.keys() | files.keys() if self.files.get(name) != files.get(name)
        ]
        of_figures = [name for name in self.figures if self.figures[name] != figures.get(name)]
        return [name for name in (*sorted(of_files), *sorted(of_figures)) if name not in BY_BUILD]


@dataclass(frozen=True)
class Again:
    """Another run of a cell: the files and figures that differ, and the run's inputs."""

    differing: list[str]
    inputs: dict[str, str]

    def others(self, made: dict[str, str]) -> list[str]:
        """The inputs from outside this tree that are not those of the example."""
        names = sorted((self.inputs.keys() | made.keys()) - set(OURS))
        return [name for name in names if self.inputs.get(name) != made.get(name)]


def given(run: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The hashes of a run's files and figures, as a cell records them."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    files = {name: of for name, of in manifest["hashes"].items() if name.startswith(FILES)}
    values: dict[str, list[str]] = {}
    for metric in read(run) or []:
        of = {key: value for key, value in asdict(metric.of).items() if value is not None}
        shown = json.dumps([of, metric.value, metric.unit], sort_keys=True)
        values.setdefault(metric.name, []).append(shown)
    return files, {name: _digest("\n".join(sorted(of))) for name, of in sorted(values.items())}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def recorded(runs: Iterable[tuple[Path, str, float]], environment: dict[str, str]) -> Cell | None:
    """The cell of the cheapest of the runs (directory, name, seconds) in virtual time; None without one."""
    for run, name, seconds in sorted(runs, key=lambda one: one[2]):
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        if manifest.get("hashes") and (run / "summary.json").exists():
            of = (manifest["topology"], manifest["parameters"], manifest["seed"])
            return Cell(name, *of, environment, seconds, *given(run))
    return None


def again(cell: Cell) -> Again:
    """Runs the cell by the present code. SystemExit if it does not run."""
    parameters = [
        word for name, value in cell.parameters.items() for word in ("-p", f"{name}={_text(value)}")
    ]
    with tempfile.TemporaryDirectory(prefix="vnet-cell-", dir="/var/tmp") as place:
        argv = [
            str(VNET), "run", cell.topology, "--time", "virtual", "--seed", str(cell.seed), *parameters,
            "--out", f"{place}/run",
        ]  # fmt: skip
        environment = os.environ | cell.environment
        done = subprocess.run(argv, cwd=ROOT, env=environment, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise SystemExit(f"examples: status {done.returncode} of {shlex.join(argv)}: it says why above")
        run = Path(place) / "run"
        inputs = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["inputs"]
        return Again(cell.differing(*given(run)), dict(inputs))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def cell_of(name: str) -> Cell | None:
    """The recorded cell of the example; None if it has none."""
    data = made(name).get("cell")
    return None if data is None else Cell(**data)


def made(name: str) -> dict[str, Any]:
    return dict(json.loads((HERE / name / "made.json").read_text(encoding="utf-8")))


def known_stale(name: str) -> str:
    """Why the example is stale without running anything; empty if only its cell can tell."""
    data = made(name)
    return str(data.get("stale") or ("" if data.get("cell") else "no cell of it was recorded"))


def chosen(names: Iterable[str], within: float | None) -> list[tuple[str, Cell]]:
    """The examples whose cell can tell, the cheapest first, as far as `within` seconds reach."""
    cells = [(name, cell_of(name)) for name in names if not known_stale(name)]
    found = sorted(((name, cell) for name, cell in cells if cell), key=lambda one: one[1].seconds)
    if within is None:
        return found
    left, kept = within, []
    for name, cell in found:
        left -= cell.seconds
        if left < 0:
            break
        kept.append((name, cell))
    return kept


def stale(name: str, why: str) -> str:
    commit = made(name).get("commit", "")
    return f"{name}: stale (made at {commit}): {why}; make examples EXAMPLES={name}"


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if names[6:] else "")


def check(names: list[str], within: float | None = None) -> list[str]:
    """Prints a line for each example; returns those that are stale."""
    found = [stale(name, why) for name in names if (why := known_stale(name))]
    print("\n".join(found), flush=True)
    for name, cell in chosen(names, within):
        now = again(cell)
        differing, others = now.differing, now.others(made(name).get("inputs", {}))
        if differing and others:
            print(f"{name}: cannot tell here: {_few(others)} is of another version", flush=True)
            continue
        if differing:
            found.append(stale(name, f"its cell {cell.name}, run again, gives other {_few(differing)}"))
        print(found[-1] if differing else f"{name}: fresh: {cell.name} gives the same again", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--within", type=float, metavar="SECONDS")
    options = parser.parse_args()
    there = sorted(file.parent.name for file in HERE.glob("*/made.json"))
    if unknown := [name for name in options.names if name not in there]:
        raise SystemExit(f"examples: {', '.join(unknown)}: no such example; there are {', '.join(there)}")
    raise SystemExit(1 if check(options.names or there, options.within) else 0)


if __name__ == "__main__":
    main()
