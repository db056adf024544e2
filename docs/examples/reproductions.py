"""Writes docs/reproductions.md: every figure, table and claim of the works, a row each.

    reproductions.py                  writes the page (`make reproductions`)
    reproductions.py --check          writes nothing; status 1 if the page differs
    reproductions.py --artefact WORK  prints a work's claims for evaluators of artefacts: the command, its
                                      minutes, the expected value and what may differ

It comes from the works' rules and printed values (reports/papers/NAME/claims.yaml) and the published
examples.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import fresh
import reading_results
import readings
import rejudged
from rejudged import Row
from works import WORKS, Study

from contract.verdict import FAILS, GIVEN, HOLDS, OPEN
from reports.claims.claim import Claim
from reports.papers import PAPERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reproductions.md"
EXAMPLE_HEAD = ("example", "command", "minutes", "made at", "state")
NOT_ATTEMPTED = "not attempted"
WORDS = (HOLDS, FAILS, OPEN, GIVEN, NOT_ATTEMPTED)
HEAD = """# Every claim of the five works

Which figure, table and sentence of the five works comes out when it is repeated, and which does
not? Each has a row here. `make reproductions` makes this page from the works' rules and printed
values and from the published examples; a test fails where it is stale.

- *holds*, *fails*, *cannot tell*: by a rule that was written down before the run. A row with a
  number in *theirs* is judged on that number, by the whole 95 % interval; the others on an order. A
  number without an interval is judged by itself; an order that needs intervals cannot be told.
- *by construction*: what the claim says went into the set-up. It is not counted as holding.
- *not attempted*: nobody has tried it here, for the reason given.
- Published measurements are judged by the rules of today. Where an example was made before a rule
  and lacks a figure for it, the row says so and cannot be told until the example is made anew.
- Minutes are of one core, of all runs of the example's campaign. An example is *stale* where one of
  its cells, run again by the present code, gives other files or figures, or where no cell of it was
  recorded: `make examples-check` runs them and names each. *Made at* is the commit.

"""


@dataclass(frozen=True)
class Line:
    """One row of the page."""

    where: str
    says: str
    theirs: str
    ours: str
    verdict: str
    example: str


def lines(study: Study) -> Iterator[Line]:
    """The rows of a study: its claims in order, then what was not attempted."""
    for row in rejudged.of_work(study.paper, study.examples):
        of, judged = row.claim, row.judged
        yield Line(of.figures, of.text, of.printed, judged.reason, judged.verdict, row.example)
    for left in PAPERS[study.paper].claims().not_attempted:
        yield Line(left.figures, left.text, "", left.because, NOT_ATTEMPTED, "")


def page() -> str:
    """The whole page."""
    return HEAD + _summary() + "".join(_work(title, studies) for title, studies in WORKS.items())


def _summary() -> str:
    rows = []
    for title, studies in WORKS.items():
        counted = Counter(line.verdict for study in studies for line in lines(study))
        rows.append((title, *(str(counted[word]) for word in WORDS)))
    return _table(("work", *WORDS), rows)


def _work(title: str, studies: tuple[Study, ...]) -> str:
    parts = [f"\n## {title}\n"]
    for study in studies:
        parts.append(f"\n### {study.title}\n\n[What was built, and why claims fail]({study.page}).\n\n")
        parts.append(_table(EXAMPLE_HEAD, (_example(name) for name in study.examples)))
        body = ((one.where, one.says, one.theirs, one.ours, one.verdict, one.example) for one in lines(study))
        head = ("where", "the work says", "theirs", "ours, or why not", "verdict", "example")
        parts.append("\n" + _table(head, body))
        parts.append(_readings(study))
    return "".join(parts)


def _readings(study: Study) -> str:
    """The sentences that can be read in more than one way; empty without any."""
    found = readings.of_study(study.paper)
    if not found:
        return ""
    body = (
        (
            one.name,
            f"\u201c{one.sentence}\u201d ({one.where})",
            one.adopted,
            one.reading,
            one.bears_on,
            str(one.fitted),
            "not set up: " + one.missing if one.missing else f"`vnet {one.command}`",
            "" if one.hours is None else f"{one.hours:.2g}",
        )
        for one in found
    )
    head = (
        "reading",
        "the work says",
        "read here as",
        "also read as",
        "bears on",
        "fitted",
        "command",
        "hours",
    )
    results = {one.name: gave for one in found if (gave := reading_results.read(one.name))}
    run = f"Run at full size: {', '.join(results)}" if results else "None was run at full size yet"
    text = (
        f"\nSentences that can be read in more than one way. {run}. As long as a reading\n"
        "has not been run, no failure above is the work's. *Fitted*: parameters that no sentence\n"
        "states.\n\n"
    )
    return text + _table(head, body) + "".join(_given(study, name, gave) for name, gave in results.items())


def _given(study: Study, name: str, gave: reading_results.Result) -> str:
    """The verdicts of a reading beside those of the adopted one."""
    body = [
        (of.figures, of.text, of.printed, row.judged.reason, row.judged.verdict, one.reason, one.verdict)
        for row in rejudged.of_work(study.paper, study.examples)
        if (one := gave.of(of := row.claim)) is not None
    ]
    head = ("where", "the work says", "theirs", "as read here", "verdict", f"as {name}", "verdict")
    return f"\nWhat {name} gives ({gave.words}):\n\n" + _table(head, body)


def _example(name: str) -> tuple[str, ...]:
    link = f"[{name}](examples/{name}/README.md)"
    state = f"stale: {why}" if (why := fresh.known_stale(name)) else "its cell is checked"
    return link, f"`{rejudged.command(name)}`", _minutes(name), str(fresh.made(name).get("commit", "")), state


def _minutes(name: str) -> str:
    found = rejudged.minutes(name)
    return "not recorded" if found is None else f"{max(found, 1):.0f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    body = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in body)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def bounds(claim: Claim) -> str:
    """The bounds of a claim's rule as text; its words if the rule has none."""
    signs = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
    known = {name: getattr(claim.how, name, None) for name in signs}
    found = [f"{signs[name]} {value:g}" for name, value in known.items() if value is not None]
    return f"{' and '.join(found)} ({claim.rule})" if found else claim.rule


def artefact(name: str) -> str:
    """The claims of a work for evaluators of its artefact; SystemExit with the known names for another."""
    known = {study.paper: study for studies in WORKS.values() for study in studies}
    if name not in known:
        raise SystemExit(f"artefact: {name!r}: no such work; write WORK= one of {', '.join(known)}")
    study = known[name]
    parts = [f"# Artefact: {study.title}\n\n", "`make kernel` comes first. Then, claim by claim:\n"]
    rows = rejudged.of_work(name, study.examples)
    for example in dict.fromkeys(row.example for row in rows):
        mine = [row for row in rows if row.example == example]
        parts.append(_artefact_part(example, mine))
    left = [(one.figures, one.text, one.because) for one in PAPERS[name].claims().not_attempted]
    parts.append("\n## Not attempted\n\n" + _table(("where", "the work says", "why"), left))
    return "".join(parts)


def _artefact_part(example: str, rows: list[Row]) -> str:
    title = example or "No example has measured these"
    how = (
        f"    {rejudged.command(example)}\n\nMinutes of one core: {_minutes(example)}.\n\n" if example else ""
    )
    body = (
        (
            row.claim.figures,
            row.claim.text,
            row.claim.printed or "an order",
            bounds(row.claim),
            row.judged.verdict,
            row.judged.reason,
        )
        for row in rows
    )
    head = ("where", "the work says", "printed", "holds if", "verdict here", "measured here")
    return f"\n## {title}\n\n{how}" + _table(head, body)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--artefact", metavar="WORK")
    options = parser.parse_args()
    if options.artefact is not None:
        sys.stdout.write(artefact(options.artefact))
        return
    made = page()
    if options.check:
        raise SystemExit(
            0 if PAGE.read_text(encoding="utf-8") == made else "reproductions: the page is stale"
        )
    PAGE.write_text(made, encoding="utf-8")
    print(f"reproductions: {PAGE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
