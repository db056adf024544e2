"""Writes docs/fidelity.md: vNET's figures beside those of other programs and of formulas.

    python bench/fidelity_page.py [--columns host,uml,virtual] [--out docs/fidelity.md]

One lab (bench/fidelity_page.yaml) runs once in each column: under the machine's own kernel, under the lab's
kernel in real time, and in virtual time. On a machine whose own kernel has no netem, column `host` runs the
lab without impairments, and the rows that need them say `none` there. If this machine cannot run a column's
lab, or its run in real time was suspect, the whole column says `none`, and a line below the table gives the
reason.
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
from ruamel.yaml import YAML

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


def run(column: str, place: Path) -> dict[str, Pair] | str:
    """Runs the lab in one column; returns the figures by row's key, or, if this machine cannot run the
    lab or was disturbed, the reason.
    """
    rows, file = ROWS, TOPOLOGY
    if column == "host" and (reason := refusal(column, file, place / "with")):
        if "netem" not in reason:
            return reason
        rows, file = tuple(row for row in ROWS if not row.impaired), unimpaired(place)
    if reason := refusal(column, file, place / column):
        return reason
    if column != "virtual" and (reason := disturbed(manifest.load(place / column))):
        return reason
    return {row.key: row.read(place / column) for row in rows}


def refusal(column: str, file: Path, out: Path) -> str:
    """Runs the lab of a file; returns why this machine cannot, or "". Ends the benchmark if it fails."""
    chosen = ("--time", "virtual") if column == "virtual" else ("--kernel", column)
    argv = (str(VNET), "run", str(file), "--out", str(out), "--lab", f"fid-{column}", *chosen)
    done = subprocess.run(argv, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == CANNOT:
        return done.stderr.strip().splitlines()[-1].strip()
    if done.returncode != 0:
        failed(argv, done.returncode, *done.stderr.splitlines()[-5:])
    return ""


def unimpaired(place: Path) -> Path:
    """Writes the lab's file without impairments of links, and without the greedy transfer, which would take
    whole cores then; returns its path.
    """
    yaml = YAML(typ="safe")
    data = yaml.load(TOPOLOGY)
    for node in data["links"].pop("padhye")["between"]:
        del data["nodes"][node]
    data["links"] = {name: {"between": link["between"]} for name, link in data["links"].items()}
    path = place / TOPOLOGY.name
    yaml.dump(data, path)
    return path


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
    said = [f"Column *{COLUMNS[name]}* {note}\n" for name, found in columns.items() if (note := _note(found))]
    return HEAD + "\n".join(lines) + "\n" + "".join(f"\n{text}" for text in said) + OTHERS


def _note(found: dict[str, Pair] | str) -> str:
    if isinstance(found, str):
        return f"has no figures: {found}"
    if len(found) < len(ROWS):
        return "is of the lab without impairments, since this machine's kernel has no netem."
    return ""


def failing(columns: dict[str, dict[str, Pair] | str]) -> list[str]:
    """Returns the keys of the rows that fail in some column, in the order of the page."""
    measured = [pairs for pairs in columns.values() if not isinstance(pairs, str)]
    return [
        row.key
        for row in ROWS
        if not all(row.holds(pairs[row.key]) for pairs in measured if row.key in pairs)
    ]


def number(value: float) -> str:
    """Returns a whole number in full, and others with five significant digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.5g}"


def _cell(row: Row, found: dict[str, Pair] | str) -> str:
    if isinstance(found, str) or row.key not in found:
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
            found[column] = run(column, Path(place)) if column in wanted else "this page was made without it"
    options.out.write_text(wrap.wrapped(page(found)))
    return 1 if failing(found) else 0


if __name__ == "__main__":
    sys.exit(main())
