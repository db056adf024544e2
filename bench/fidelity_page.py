"""Writes docs/fidelity.md: vNET's figures beside those of programs that vNET did not write, and closed forms.

    python bench/fidelity_page.py [--columns host,uml,virtual] [--out docs/fidelity.md]

One lab (bench/fidelity_page.yaml) runs once in each column: under the machine's own kernel, under the lab's
kernel in real time, and in virtual time. A column that this machine cannot run, or whose run in real
time was suspect, has the reason in its place.
Exit status: 1 if a figure is out of its bound.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from commands import CANNOT, ROOT, VNET, failed, tool
from fidelity_rows import ROWS, Pair, Row

from contract import manifest

sys.path.insert(0, str(ROOT / "docs"))
import wrap

TOPOLOGY = Path(__file__).with_suffix(".yaml")
COLUMNS = {"host": "host kernel", "uml": "lab kernel", "virtual": "virtual time"}
HEAD = """# Fidelity

<!-- Made by `make fidelity`; change bench/fidelity_page.py instead. -->

Do other programs measure what vNET measures? `make fidelity` runs one lab (`bench/fidelity_page.yaml`)
under each kernel, with ping, iperf3, `tc -s`, tshark, `/proc` and a broker's `$SYS` on it, and writes
this page. Each cell has vNET's figure, then the other one. A bound is on their difference, relative to
the other one (`bench/fidelity_rows.py`). The closed forms are M/D/1 (Pollaczek-Khinchine), a burst
through a rate, and the throughput of TCP Reno by Padhye et al. (SIGCOMM 1998).

"""
OTHERS = """
## Published accuracy of other testbeds

Mininet-HiFi was compared with hardware by the experiments of other papers: of the 20 traffic patterns
of Hedera, 16 have nearly the same throughput as the hardware testbed (Handigol et al., *Reproducible
Network Experiments Using Container-Based Emulation*, CoNEXT 2012, figure 8). There is no hardware
behind the table above, and no closed form behind that figure, so the two do not rank one another.
"""


def run(column: str, place: Path) -> Path | str:
    """Runs the lab in one column; returns the run directory, or the reason why there are no figures: this
    machine cannot run it, or was disturbed.
    """
    chosen = ("--time", "virtual") if column == "virtual" else ("--kernel", column)
    argv = (str(VNET), "run", str(TOPOLOGY), "--out", str(place / column), "--lab", f"fid-{column}", *chosen)
    done = subprocess.run(argv, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == CANNOT:
        return done.stderr.strip().splitlines()[-1].strip()
    if done.returncode != 0:
        failed(argv, done.returncode, *done.stderr.splitlines()[-5:])
    if column != "virtual" and (why := disturbed(manifest.load(place / column))):
        return why
    return place / column


def disturbed(found: manifest.Manifest) -> str:
    """Returns the reason why a run in real time is suspect (the machine was busy); "" if it is not
    suspect.
    """
    if not found.suspect:
        return ""
    marks = [warning["text"] for warning in found.warnings if warning.get("suspect")]
    return f"its run was suspect: {'; '.join(marks[:2])}"


def page(columns: dict[str, dict[str, Pair] | str]) -> str:
    """Returns the page: a table with a row for each figure and a column for each kernel."""
    names = [COLUMNS[name] for name in columns]
    lines = [
        f"| figure | against | {' | '.join(names)} | bound |",
        f"|---|---|{'---|' * len(names)}---|",
    ]
    for row in ROWS:
        cells = [_cell(row, found) for found in columns.values()]
        figure = f"{row.figure}, {row.unit}" if row.unit else row.figure
        lines.append(f"| {figure} | {row.against} | {' | '.join(cells)} | {100 * row.bound:g} % |")
    said = [
        f"Column *{COLUMNS[n]}* has no figures: {found}\n"
        for n, found in columns.items()
        if isinstance(found, str)
    ]
    return HEAD + "\n".join(lines) + "\n" + "".join(f"\n{text}" for text in said) + OTHERS


def failing(columns: dict[str, dict[str, Pair] | str]) -> list[str]:
    """Returns the keys of the rows that fail in some column, in the order of the page."""
    measured = [pairs for pairs in columns.values() if not isinstance(pairs, str)]
    return [row.key for row in ROWS if not all(row.holds(pairs[row.key]) for pairs in measured)]


def number(value: float) -> str:
    """Returns a whole number in full, and others with five significant digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.5g}"


def _cell(row: Row, found: dict[str, Pair] | str) -> str:
    if isinstance(found, str):
        return "none"
    pair = found[row.key]
    word = "holds" if row.holds(pair) else "**fails**"
    return f"{number(pair.ours)}, {number(pair.theirs)}: {word}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", default=",".join(COLUMNS), help="of host, uml, virtual")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "fidelity.md")
    options = parser.parse_args(arguments)
    wanted = options.columns.split(",")
    if unknown := [name for name in wanted if name not in COLUMNS]:
        parser.error(f"--columns: {unknown[0]} is no column; write one of {', '.join(COLUMNS)}")
    for program in ("ping", "iperf3", "tshark", "mosquitto_sub"):
        tool(program)
    found: dict[str, dict[str, Pair] | str] = {}
    with tempfile.TemporaryDirectory() as place:
        for column in COLUMNS:
            made = run(column, Path(place)) if column in wanted else "this page was made without it"
            found[column] = made if isinstance(made, str) else {row.key: row.read(made) for row in ROWS}
    options.out.write_text(wrap.wrapped(page(found)))
    return 1 if failing(found) else 0


if __name__ == "__main__":
    sys.exit(main())
