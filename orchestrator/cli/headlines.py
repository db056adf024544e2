"""The end of a run in the terminal: the headline table, the verdicts of the proof, where the page is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capture import verdict
from orchestrator.cli.output import console, table
from orchestrator.lab import judgement

if TYPE_CHECKING:
    from reports.judged import Counts

MOST_FAILED = 5
MOST_NAMED = 2
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
    """Lines with their colours, from verdicts.json: the proof of the links, then, with `failures`, what
    failed of it. How tight it was, proof.json says.
    """
    from reports import judged

    counted = Counter(judged.known(directory).get("proof", {}))
    if not counted:
        return []
    lines = [(f"links   {_said(counted)}", _colour(counted))]
    try:
        proof: list[dict[str, Any]] = json.loads((directory / "proof.json").read_text())
    except FileNotFoundError:  # of a campaign, each run has its own
        return lines
    except (OSError, ValueError) as error:
        return [*lines, (f"        proof.json cannot be read: {error}", "red")]
    proof = judged.said(directory, "proof", proof, "reason")
    lines += [(f"        {line}", "dim") for line in _slacks(proof)]
    lines += [(f"        {line}", "yellow") for line in _open(proof)]
    failed = [one for one in proof if one["verdict"] == verdict.FAILS][: MOST_FAILED if failures else 0]
    lines += [
        (f"        {one['link']} {one['direction']} {one['quantity']}: {one['reason']}", "red")
        for one in failed
    ]
    return lines


def _open(proof: list[dict[str, Any]]) -> list[str]:
    """Why a quantity cannot be told, and what would tell it, once for all links of which that is said."""
    links: dict[str, list[str]] = {}
    for one in proof:
        if one["verdict"] == verdict.OPEN:
            said = f"{one['quantity']}: cannot tell: {one['reason']}"
            links.setdefault(said, []).append(f"{one['link']} {one['direction']}")
    named = {said: ", ".join(of[:MOST_NAMED]) for said, of in links.items()}
    rest = {said: len(of) - MOST_NAMED for said, of in links.items()}
    lines = [f"{said} ({named[said]}{f' and {n} more' if n > 0 else ''})" for said, n in rest.items()]
    more = len(lines) - MOST_FAILED
    return lines[:MOST_FAILED] + ([f"and {more} more that cannot be told: proof.json"] if more > 0 else [])


def _said(counted: Counter[str]) -> str:
    """`2 fails, 4 holds`: the worst first."""
    return ", ".join(f"{counted[word]} {word}" for word in verdict.ORDER if counted[word])


def _colour(counted: Counter[str]) -> str:
    return "red" if counted[verdict.FAILS] else "yellow" if counted[verdict.OPEN] else "green"


def others(directory: Path) -> list[tuple[str, str]]:
    """Lines with their colours of all that was judged beside the links: promises, checks, claims."""
    from reports import judged

    found: Counts = judged.known(directory)
    return [
        (f"{of + 's':<9}{_said(Counter(words))}", _colour(Counter(words)))
        for of, words in found.items()
        if of != "proof"
    ]


def _slacks(proof: list[dict[str, Any]]) -> list[str]:
    """How tight each quantity was judged: `delay: 4 holds; slack 200 us`."""
    found = []
    for quantity in dict.fromkeys(one["quantity"] for one in proof if one.get("slack") is not None):
        lines = [one for one in proof if one["quantity"] == quantity]
        counted = Counter(one["verdict"] for one in lines)
        slacks = [one["slack"] for one in lines if one.get("slack") is not None]
        least, most = (judgement.shown(lines[0]["unit"], s) for s in (min(slacks), max(slacks)))
        span = most if least == most else judgement.shown(lines[0]["unit"], min(slacks), max(slacks))
        found.append(f"{quantity}: {_said(counted)}; slack {span}")
    return found
