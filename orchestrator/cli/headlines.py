"""The end of a run in the terminal: the headline table, the verdicts of the proof, where the page is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from capture import retired, verdict
from orchestrator.cli.output import console, table
from orchestrator.lab import judgement

MOST_FAILED = 5
NAMES = 24  # characters in which what is measured has room
BETWEEN = 3


def show(directory: Path, page: Path | None, *, failures: bool = True) -> None:
    """Print what a run or campaign directory says; without `failures` where warnings tell each of them."""
    from rich.text import Text

    from reports.headline import headline

    out = console()
    rows = [list(row) for row in headline(directory)]
    if len(rows) > 1:
        shown = fitting(rows, out.width)
        narrow = [row[:shown] for row in rows]
        out.print(table(narrow[0], narrow[1:], right=narrow[0][1:]))
        if more := len(rows[0]) - shown:
            out.print(Text(f"in the report: {more} more of {len(rows[0]) - 1} columns", style="dim"))
    for line, style in (*verdicts(directory, failures=failures), *others(directory)):
        out.print(Text(line, style=style))
    if page is not None:
        out.print(Text.assemble(("report  ", "bold"), str(page)), soft_wrap=True)


def fitting(rows: list[list[str]], width: int) -> int:
    """How many columns, at least two, have room without a word or figure that is cut."""
    taken = min(NAMES, max(len(row[0]) for row in rows)) + BETWEEN
    for number, column in enumerate(list(zip(*rows, strict=True))[1:], 1):
        taken += max((len(word) for cell in column for word in cell.split()), default=0) + BETWEEN
        if taken > width and number > 1:
            return number
    return len(rows[0])


def verdicts(directory: Path, *, failures: bool = True) -> list[tuple[str, str]]:
    """Lines with their colours: the proof of the links, then, with `failures`, what failed of it."""
    path = directory / "proof.json"
    if not path.exists():
        return []
    try:
        proof = retired.objects("proof.json", json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        return [(f"links   proof.json cannot be read: {error}", "red")]
    proof = [{**one, "verdict": verdict.word(one.get("verdict"))} for one in proof]
    counted = Counter(one["verdict"] for one in proof)
    if not counted:
        return []
    said = ", ".join(f"{number} {word}" for word, number in sorted(counted.items()))
    lines = [(f"links   {said}", _colour(counted))]
    lines += [(f"        {line}", "dim") for line in _tolerances(proof)]
    failed = [one for one in proof if one["verdict"] == "fails"][: MOST_FAILED if failures else 0]
    lines += [
        (f"        {one['link']} {one['direction']} {one['quantity']}: {one['reason']}", "red")
        for one in failed
    ]
    return lines


def _colour(counted: Counter[str]) -> str:
    return "red" if counted[verdict.FAILS] else "yellow" if counted[verdict.OPEN] else "green"


def others(directory: Path) -> list[tuple[str, str]]:
    """Lines with their colours of all that was judged beside the links: promises, checks, claims."""
    from reports import verdicts as written

    lines = []
    for of, words in written.known(directory).items():
        if of != "proof":
            counted = Counter(words)
            said = ", ".join(f"{counted[word]} {word}" for word in verdict.ORDER if counted[word])
            lines.append((f"{of + 's':<9}{said}", _colour(counted)))
    return lines


def _tolerances(proof: list[dict[str, Any]]) -> list[str]:
    """How tight each quantity was judged: `delay: 4 holds; tolerance 200 us`."""
    found = []
    for quantity in dict.fromkeys(one["quantity"] for one in proof if one.get("tolerance") is not None):
        lines = [one for one in proof if one["quantity"] == quantity]
        counted = Counter(one["verdict"] for one in lines)
        said = ", ".join(f"{number} {word}" for word, number in sorted(counted.items()))
        tolerances = [one["tolerance"] for one in lines if one.get("tolerance") is not None]
        least, most = (judgement.shown(lines[0]["unit"], s) for s in (min(tolerances), max(tolerances)))
        span = most if least == most else judgement.shown(lines[0]["unit"], min(tolerances), max(tolerances))
        found.append(f"{quantity}: {said}; tolerance {span}")
    return found
