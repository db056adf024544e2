"""Implements `vnet compare`, which compares the figures of runs, campaigns and baselines and judges
conditions on the differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import DONE, REFUSED, SUSPECT, UNMET, UNTOLD, USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, say, table
from orchestrator.cli.quantities import SHARE

if TYPE_CHECKING:
    from reports.compare.comparison import Comparison
    from reports.compare.condition import Limit, Outcome
    from reports.compare.side import Side

PLACE = Path("results") / "compare"


@click.command("compare")
@click.argument("sides", nargs=-1, required=True, metavar="A B [C]...", type=click.Path(path_type=Path))
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit status 7 if it is met, 8 if the runs do not decide it: 'latency_p99[class=control] > +10 %' "
    "(repeat it).",
)
@click.option("--metric", "also", multiple=True, metavar="NAME", help="Judge this figure, too (repeat it).")
@click.option(
    "--margin", type=SHARE, default="5 %", show_default=True, help="Relative difference that matters."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The page, an HTML file.")
@click.option("--strict", is_flag=True, help="Exit status 5 if a compared run is suspect.")
@json_option
def compare_command(
    sides: tuple[Path, ...],
    conditions: tuple[str, ...],
    also: tuple[str, ...],
    margin: float,
    out: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Compare runs, campaigns or baseline files: A with B, and with each further one.

    Runs with the same seed and schedule are paired. Each difference has a 95 % interval and one of three
    findings: it differs, any difference is smaller than a stated percentage, or the runs do not decide it.

    \b
    Example:  vnet compare results/old results/new
              vnet compare baseline.json results/new --fail-if 'latency_p99[class=control] > +10 %'
    """
    from reports.compare import page
    from reports.compare.comparison import compare
    from reports.compare.condition import judge
    from reports.compare.side import letters

    if len(sides) < 2:
        raise CliError("compare: one side has nothing to be compared with; name two or more", USAGE)
    with _refusals():
        limits, place = [limit(text) for text in conditions], out or _place(sides)
        page.insist_on_page(place)
        named = zip(letters(len(sides)), sides, strict=True)
        read = [_read(letter, path) for letter, path in named]
        found = compare(read, margin, {*also, *(limit.name for limit in limits)})
        outcomes = judge(limits, found)
        written = page.write(found, place, outcomes)
    if as_json:
        print_json(_as_data(found, outcomes, written))
    else:
        _say(found, outcomes, written)
    return _status(found, outcomes, strict)


def limit(text: str) -> Limit:
    """Returns the limit of a `--fail-if` text, in the grammar of expectations; raises CompareError if the
    text does not follow it.
    """
    from orchestrator.language import condition, units
    from reports.compare.condition import FORM
    from reports.compare.condition import limit as stated
    from reports.compare.errors import CompareError

    try:
        return stated(text, condition.mapping(text))
    except units.UnitError as error:
        raise CompareError(f"--fail-if {text!r}: {error.rule}; write it as '{FORM}'") from error


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns CompareError and RunDirectoryError, for sides that cannot be read or compared, into CliError with
    status REFUSED.
    """
    from reports.compare.errors import CompareError
    from reports.errors import RunDirectoryError

    try:
        yield
    except (CompareError, RunDirectoryError) as error:
        raise CliError(str(error), REFUSED) from error


def _read(letter: str, path: Path) -> Side:
    from reports.compare.reading import read_side
    from reports.damage import told

    with told(path):
        return read_side(letter, path)


def _place(sides: Sequence[Path]) -> Path:
    """Returns the default path of the page: an HTML file in results/compare/, named after the first three
    sides.
    """
    names = [path.resolve().name.removesuffix(".json") for path in sides[:3]]
    return PLACE / f"{'-vs-'.join(names)}.html"


def _say(found: Comparison, outcomes: Sequence[Outcome], written: Path) -> None:
    from reports.compare import trials
    from reports.compare.words import text

    for line in found.notes:
        note(line)
    for line in text(found):
        say(line)
    if rows := trials.rows(found):
        head, *body = rows
        numbers = [title for title in head if title not in ("frame size", "side", "limited by")]
        console().print(table(head, [list(row) for row in body], right=numbers))
    for one in outcomes:
        say(f"{one.limit.text}: {one.verdict}: {one.reason}")
    say(f"page: {written}")


def _status(found: Comparison, outcomes: Sequence[Outcome], strict: bool) -> int:
    """Returns the exit status, the first of these that applies: SUSPECT with `strict` if a run is suspect,
    UNMET if a condition is met, UNTOLD if a condition cannot be decided, DONE.
    """
    from contract import verdict

    if strict and any(one.suspect for side in found.sides for one in side.samples):
        return SUSPECT
    verdicts = {one.verdict for one in outcomes}
    if verdict.FAILS in verdicts:
        return UNMET
    return UNTOLD if verdict.OPEN in verdicts else DONE


def _as_data(found: Comparison, outcomes: Sequence[Outcome], written: Path) -> dict[str, Any]:
    from dataclasses import asdict

    from reports.compare import trials
    from reports.compare.settings import settings
    from reports.compare.table import as_data
    from reports.compare.words import first_line, method

    return {
        "answer": first_line(found),
        "method": method(found),
        "sides": [
            {"letter": side.letter, "name": side.name, "runs": len(side.samples)} for side in found.sides
        ],
        "notes": list(found.notes),
        "settings": [asdict(one) for one in settings(found.sides)],
        "trials": [list(row) for row in trials.rows(found)],
        "figures": [as_data(row) for row in found.rows],
        "conditions": [
            {"fail_if": one.limit.text, "figure": one.row.what, "verdict": one.verdict, "reason": one.reason}
            for one in outcomes
        ],
        "page": str(written),
    }
