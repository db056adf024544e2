"""Renders the result of a hunt as one HTML page: violations with their files and logs, and the coverage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from contract import regular
from reports.sections.section import environment

CSS = Path(__file__).parent / "page.css"
LINES = 12  # number of lines shown of the end of each log
WIDTH, HEIGHT = 600, 140  # size of the drawing of a hunt's course, in its units


@dataclass(frozen=True)
class Shown:
    """A violation as the page shows it. text: its topology file. logs: for each log of its run the file's
    name and last lines. report: the page of its run, relative to the hunt's page; empty if there is none.
    """

    found: dict[str, Any]
    events: tuple[str, ...]
    text: str
    logs: tuple[tuple[str, str], ...]
    report: str


def write(found: dict[str, Any], title: str) -> Path:
    """Writes index.html into the hunt's directory and returns its path. `found` is the output of `vnet hunt
    --json`; files of violations that no longer exist are left out.
    """
    directory = Path(found["directory"])
    page = directory / "index.html"
    text = (
        environment()
        .get_template("hunt.html.j2")
        .render(
            css=Markup(CSS.read_text(encoding="utf-8")),
            title=title,
            found=found,
            violations=[_shown(one, directory) for one in found["violations"]],
            kinds=list(coverage(found)),
            width=WIDTH,
            height=HEIGHT,
            course=course(found["rounds"]),
            lines=LINES,
        )
    )
    page.write_text(text, encoding="utf-8")
    return page


def coverage(found: dict[str, Any]) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """Yields each kind of fault of the hunt, its number of events, and for each third of the hold how many
    trials have such an event there, and how many of these fail.
    """
    cells = {(one["fault"], one["third"]): (one["trials"], one["fails"]) for one in found["covered"]}
    for kind, events in found["tried"].items():
        yield kind, events, [cells.get((kind, third), (0, 0)) for third in (1, 2, 3)]


def course(rounds: Sequence[Sequence[int]]) -> str:
    """Returns the points of a line: features seen against trials, each axis from 0 to its largest value;
    empty without rounds.
    """
    if not rounds:
        return ""
    trials, features = rounds[-1][0], max(1, rounds[-1][1])
    points = [(0, 0), *((one[0], one[1]) for one in rounds)]
    return " ".join(f"{WIDTH * x / trials:.1f},{HEIGHT - HEIGHT * y / features:.1f}" for x, y in points)


def _shown(one: dict[str, Any], directory: Path) -> Shown:
    file, run_dir = Path(one["file"]), Path(one["run_dir"])
    page = run_dir / "report" / "index.html"
    return Shown(
        one,
        tuple(", ".join(f"{key}: {value}" for key, value in event.items()) for event in one["events"]),
        regular.read_text(file) if file.is_file() else "",
        tuple((log.name, _end(log)) for log in sorted((run_dir / "raw" / "logs").glob("*.log"))),
        os.path.relpath(page, directory) if page.is_file() else "",
    )


def _end(log: Path) -> str:
    """Returns the last lines of a log."""
    return "\n".join(regular.read_bytes(log).decode(errors="replace").splitlines()[-LINES:])
