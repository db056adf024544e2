"""Prints the result of a run or campaign: expectations, headline table, verdicts, and the path of the
page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contract import manifest, rundir, verdict
from contract.proof import Proven
from contract.verdict import Judged
from orchestrator.cli.output import print_result
from orchestrator.lab import judgement

if TYPE_CHECKING:
    from reports.judged import Summary

MOST_FAILED = 5  # largest number of failed verdicts, and of reasons for open ones, that are listed
# subject of a verdict -> its words in a sentence
SUBJECTS = {"guarantee": "delivery guarantees", "check": "checks of the run"}
MOST_NAMED = 2  # largest number of links that are listed with one reason


def show(directory: Path, page: Path | None, *, failures: bool = True) -> None:
    """Prints the results in a run or campaign directory: expectations, headline table, verdicts and monitors,
    and the path `page` if it is not None. failures: True also lists the failed link checks; use False if
    warnings have listed them already.
    """
    from reports.headline import result

    table, judged = result(directory)
    rows = [list(row) for row in table]
    lines = [*verdicts(judged, failures=failures), *others(judged), *explained(directory), *unread(directory)]
    last = f"report: {page}" if page is not None else ""
    print_result(rows if len(rows) > 1 else [], lines, last, first=expectations(judged.expectations))


def expectations(found: Sequence[Judged]) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs on the verdicts of expectations: their numbers, then each expectation that
    fails or is undecided; empty without expectations.
    """
    from reports.judged import answer

    if not found:
        return []
    counted = Counter(str(one.verdict) for one in found)
    lines = [(f"{answer(found)}.", _colour(counted))]
    for word, colour in ((verdict.FAILS, "red"), (verdict.OPEN, "yellow")):
        lines += [(f"  {word}: {one.name}: {one.reason}", colour) for one in found if one.verdict == word]
    return lines


def verdicts(judged: Summary, *, failures: bool = True) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs on the link checks: their numbers, the tolerances, and the reasons of
    undecided ones; empty if there are no link checks. failures: True also lists the failed ones, at most
    MOST_FAILED.
    """
    counted = Counter(judged.counts.get("proof", {}))
    if not counted:
        return []
    lines, proof = [(f"link checks: {_counted(counted)}", _colour(counted))], judged.proof
    if judged.unreadable:
        return [*lines, (f"  proof.json cannot be read: {judged.unreadable}", "red")]
    lines += [(f"  {line}", "dim") for line in _tolerances(proof)]
    lines += [(f"  {line}", "yellow") for line in _open(proof)]
    failed = [one for one in proof if one.verdict == verdict.FAILS][: MOST_FAILED if failures else 0]
    return lines + [(f"  {one.link} {one.direction} {one.quantity}: {one.reason}", "red") for one in failed]


def others(judged: Summary) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs with the numbers of verdicts on guarantees, checks of the run and claims;
    link checks and expectations have lines of their own.
    """
    return [
        (f"{SUBJECTS.get(of, f'{of}s')}: {_counted(counted)}", _colour(counted))
        for of, found in judged.counts.items()
        if of not in ("proof", "expectation")
        for counted in [Counter(found)]
    ]


def explained(directory: Path) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs: name and sentence of each monitor of a run that reached its threshold."""
    found = manifest.load(directory).monitors
    return [(f"{one['name']}: {one['text']}", "yellow") for one in found if one.get("state") == "reached"]


def unread(directory: Path) -> list[tuple[str, str]]:
    """Returns (line, colour) pairs, one for each log of a run that has another format than the one in its
    `figures`.
    """
    from reports.metrics import programs

    if not (directory / rundir.PLAN).is_file():
        return []
    try:
        plan = rundir.read_plan(directory)
    except rundir.UnreadableError:
        return []  # only the page shows the result
    found = programs.unread(directory, plan)
    return [(f"{one.text}; {programs.REMEDY}", "yellow") for one in found]


def _open(proof: Sequence[Proven]) -> list[str]:
    """Returns a line for each reason of verdicts `cannot tell`, with up to MOST_NAMED links. After
    MOST_FAILED lines, one line states the number of the others.
    """
    links: dict[str, list[str]] = {}
    for one in proof:
        if one.verdict == verdict.OPEN:
            text = f"{one.quantity}: cannot tell: {one.reason}"
            links.setdefault(text, []).append(f"{one.link} {one.direction}")
    lines = []
    for text, of in links.items():
        more = f" and {len(of) - MOST_NAMED} more" if len(of) > MOST_NAMED else ""
        lines.append(f"{text} ({', '.join(of[:MOST_NAMED])}{more})")
    rest = len(lines) - MOST_FAILED
    return lines[:MOST_FAILED] + ([f"and {rest} more without a verdict: proof.json"] if rest > 0 else [])


def _counted(counted: Mapping[str, int]) -> str:
    """Returns the numbers of verdicts as text, the worst first: `1 fails, 10 holds`."""
    return ", ".join(f"{counted[one]} {one}" for one in verdict.ORDER if counted.get(one))


def _colour(counted: Counter[str]) -> str:
    return "red" if counted[verdict.FAILS] else "yellow" if counted[verdict.OPEN] else "green"


def _tolerances(proof: Sequence[Proven]) -> list[str]:
    """Returns a line with the tolerances of each checked quantity: `delay: 4 holds; tolerance 200 us`."""
    found = []
    for quantity in dict.fromkeys(one.quantity for one in proof if one.tolerance is not None):
        lines = [one for one in proof if one.quantity == quantity]
        counted = Counter(str(one.verdict) for one in lines)
        tolerances = sorted(one.tolerance for one in lines if one.tolerance is not None)
        unit = lines[0].unit
        least, most = judgement.shown(unit, tolerances[0]), judgement.shown(unit, tolerances[-1])
        span = most if least == most else judgement.shown(unit, tolerances[0], tolerances[-1])
        found.append(f"{quantity}: {_counted(counted)}; tolerance {span}")
    return found
