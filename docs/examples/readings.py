"""Runs the readings of ambiguous sentences of the works at full size (`make readings`), and says their hours.

readings.py             names each reading with its sentence's place and its hours of one core
readings.py --run       runs those that have a command, each into results/readings/NAME; what was stopped
                        goes on where it was
readings.py --publish   keeps what they gave so far, for docs/reproductions.md (reading_results.py)
readings.py NAME...     of these readings alone
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import publish
import reading_results
import rejudged

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VNET = Path(sys.executable).parent / "vnet"


@dataclass(frozen=True)
class Reading:
    """One way to read a sentence of a work."""

    name: str
    study: str  # as reports/papers names it
    where: str
    sentence: str
    reading: str
    adopted: str  # how the published examples read it
    bears_on: str
    fitted: int
    varies: str = ""  # the published example
    of: str = ""  # what the names of its cells have that the reading varies; all of them if empty
    command: str = ""
    missing: str = ""  # what vNET lacks for it, where there is no command

    @property
    def hours(self) -> float | None:
        """The hours of one core, by the runs of the example that the reading varies; None without a command
        or such runs.
        """
        taken = rejudged.minutes(self.varies, self.of) if self.command else None
        return None if taken is None else taken / 60

    @property
    def results(self) -> Path:
        return ROOT / "results/readings" / self.name


def listed() -> list[Reading]:
    """The readings of readings.toml, in its order; SystemExit for one that neither runs nor says why."""
    data = tomllib.loads((HERE / "readings.toml").read_text(encoding="utf-8"))
    found = [Reading(name, varies=one.pop("as", ""), **one) for name, one in data.items()]
    if wrong := [one.name for one in found if bool(one.command) == bool(one.missing)]:
        raise SystemExit(f"readings: {', '.join(wrong)}: write either `command` or what is `missing` for it")
    return found


def of_study(study: str) -> list[Reading]:
    return [reading for reading in listed() if reading.study == study]


def run(reading: Reading) -> None:
    """Runs the reading's campaign; SystemExit with its status if it fails."""
    argv = [str(VNET), *shlex.split(reading.command), "--out", str(reading.results)]
    status = subprocess.run(argv, cwd=ROOT, check=False).returncode
    if status != 0:
        raise SystemExit(f"readings: {reading.name}: status {status}: vnet says why above; mend that")


def keep(reading: Reading) -> None:
    """Publishes what the reading gave so far; SystemExit if no run of it has ended."""
    found = reading_results.result(
        reading.study, f"vnet {reading.command}", publish.commit(), reading.results
    )
    file = reading_results.write(reading.name, found)
    print(f"readings: {file.relative_to(ROOT)}: {len(found.claims)} claims, {found.words}", flush=True)


def _line(reading: Reading) -> str:
    cost = f"{reading.hours:.2g} h" if reading.hours is not None else "not set up"
    return f"{reading.name:24} {cost:>10}  {reading.where}: {reading.missing or reading.reading}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    known = {reading.name: reading for reading in listed()}
    if unknown := [name for name in options.names if name not in known]:
        raise SystemExit(f"readings: {', '.join(unknown)}: no such reading; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    print("\n".join(_line(reading) for reading in chosen))
    print(f"readings: {sum(reading.hours or 0 for reading in chosen):.1f} h of one core together", flush=True)
    for reading in chosen:
        if reading.command and options.run:
            run(reading)
        if options.publish and reading.results.exists():
            keep(reading)


if __name__ == "__main__":
    main()
