"""Prints the result of a run or campaign: the headline table, the verdicts, and the path of the page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract import retired, verdict
from orchestrator.cli.output import console, table
from orchestrator.lab import judgement

MOST_FAILED = 5  # most failed verdicts, and most reasons for open ones, that are listed
NAMES = 24  # most characters of the first column; longer names wrap
BETWEEN = 3  # characters between columns
SUBJECTS = {"guarantee": "delivery guarantees", "check": "checks of the run"}  # subject -> its words
MOST_NAMED = 2  # most links that are listed with one reason


def show(directory: Path, page: Path | None, *, failures: bool = True) -> None:
    """Prints the results in a run or campaign directory, and the path `page` if it is not None.

    failures: also list the failed link checks; leave them out if warnings have listed them.
    """
    from rich.text import Text

    from reports.headline import headline

    out = console()
    for line, style in expectations(directory):
        out.print(Text(line, style=style))
    rows = [list(row) for row in headline(directory)]
    if len(rows) > 1:
        shown = fitting(rows, out.width)
        narrow = [row[:shown] for row in rows]
        out.print(table(narrow[0], narrow[1:], right=narrow[0][1:]))
        if more := len(rows[0]) - shown:
            out.print(Text(f"the report has {more} more columns", style="dim"))
    for line, style in (*verdicts(directory, failures=failures), *others(directory)):
        out.print(Text(line, style=style))
    if page is not None:
        out.print(Text.assemble(("report: ", "bold"), str(page)), soft_wrap=True)


def expectations(directory: Path) -> list[tuple[str, str]]:
    """Lines with their colours: how the expectations came out, then each that does not hold."""
    from reports import judged

    found = judged.of(directory, "expectation") or []
    if not found:
        return []
    counted = Counter(str(one.verdict) for one in found)
    lines = [(f"{judged.answer(found)}.", _colour(counted))]
    for word, colour in ((verdict.FAILS, "red"), (verdict.OPEN, "yellow")):
        lines += [(f"  {word}: {one.name}: {one.reason}", colour) for one in found if one.verdict == word]
    return lines


def fitting(rows: list[list[str]], width: int) -> int:
    """Returns how many columns fit `width` characters without a broken word or figure; two or more."""
    taken = min(NAMES, max(len(row[0]) for row in rows)) + BETWEEN
    for number, column in enumerate(list(zip(*rows, strict=True))[1:], 1):
        taken += max((len(word) for cell in column for word in cell.split()), default=0) + BETWEEN
        if taken > width and number > 1:
            return number
    return len(rows[0])


def verdicts(directory: Path, *, failures: bool = True) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs on the link checks; empty if the directory has none.

    The counts come from verdicts.json. Tolerances, reasons of open checks and, with `failures`, failed checks
    come from proof.json, which each run of a campaign has for itself.
    """
    from reports import judged

    counted = Counter(judged.known(directory).get("proof", {}))
    if not counted:
        return []
    lines = [(f"link checks: {_counted(counted)}", _colour(counted))]
    try:
        proof: list[dict[str, Any]] = retired.objects(
            "proof.json", json.loads((directory / "proof.json").read_text())
        )
    except FileNotFoundError:  # the directory of a campaign, whose runs have it
        return lines
    except (OSError, ValueError) as error:
        return [*lines, (f"  proof.json cannot be read: {error}", "red")]
    proof = judged.said(directory, "proof", proof, "reason")
    lines += [(f"  {line}", "dim") for line in _tolerances(proof)]
    lines += [(f"  {line}", "yellow") for line in _open(proof)]
    failed = [one for one in proof if one["verdict"] == verdict.FAILS][: MOST_FAILED if failures else 0]
    lines += [
        (f"  {one['link']} {one['direction']} {one['quantity']}: {one['reason']}", "red") for one in failed
    ]
    return lines


def _open(proof: list[dict[str, Any]]) -> list[str]:
    """Returns a line for each reason of verdicts `cannot tell`, with the links; MOST_FAILED lines at most."""
    links: dict[str, list[str]] = {}
    for one in proof:
        if one["verdict"] == verdict.OPEN:
            text = f"{one['quantity']}: cannot tell: {one['reason']}"
            links.setdefault(text, []).append(f"{one['link']} {one['direction']}")
    lines = []
    for text, of in links.items():
        more = f" and {len(of) - MOST_NAMED} more" if len(of) > MOST_NAMED else ""
        lines.append(f"{text} ({', '.join(of[:MOST_NAMED])}{more})")
    rest = len(lines) - MOST_FAILED
    return lines[:MOST_FAILED] + ([f"and {rest} more that cannot be told: proof.json"] if rest > 0 else [])


def _counted(counted: Mapping[str, int]) -> str:
    """Returns the numbers of verdicts in words, the worst first: `1 fails, 10 holds`."""
    return ", ".join(f"{counted[one]} {one}" for one in verdict.ORDER if counted.get(one))


def _colour(counted: Counter[str]) -> str:
    return "red" if counted[verdict.FAILS] else "yellow" if counted[verdict.OPEN] else "green"


def others(directory: Path) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs with the numbers of verdicts on guarantees, checks of the run, claims."""
    from reports import judged

    lines = []
    for of, found in judged.known(directory).items():
        if of not in ("proof", "expectation"):
            counted = Counter(found)
            lines.append((f"{SUBJECTS.get(of, f'{of}s')}: {_counted(counted)}", _colour(counted)))
    return lines


def _tolerances(proof: list[dict[str, Any]]) -> list[str]:
    """Returns a line with the tolerances of each checked quantity: `delay: 4 holds; tolerance 200 us`."""
    found = []
    for quantity in dict.fromkeys(one["quantity"] for one in proof if one.get("tolerance") is not None):
        lines = [one for one in proof if one["quantity"] == quantity]
        counted = Counter(one["verdict"] for one in lines)
        tolerances = sorted(one["tolerance"] for one in lines if one.get("tolerance") is not None)
        unit = lines[0]["unit"]
        least, most = judgement.shown(unit, tolerances[0]), judgement.shown(unit, tolerances[-1])
        span = most if least == most else judgement.shown(unit, tolerances[0], tolerances[-1])
        found.append(f"{quantity}: {_counted(counted)}; tolerance {span}")
    return found
