"""Writes the verdicts of a run or a campaign as a JUnit file, which continuous integration shows.

A case passes if its verdict is `holds`, or `by construction` for a claim; a case that fails is a failure. A
run that failed or is suspect is an error, because its figures cannot be trusted. A case that was not run, or
whose verdict is `cannot tell`, is skipped, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from contract import regular
from contract.verdict import FAILS, HOLDS, Judged
from reports.cell import Cell
from reports.study import Study, study_of_campaign, study_of_run
from reports.verdicts import read_or_made

Word = Literal["passed", "failure", "error", "skipped"]
# other verdicts give a skipped case, with the reason
WORDS: dict[str, Word] = {HOLDS: "passed", FAILS: "failure"}


@dataclass(frozen=True)
class Case:
    """One JUnit case: the subject of a verdict, its name, the result and the reason."""

    of: str  # run, expectation, proof, guarantee, check, claim
    name: str
    word: Word
    reason: str = ""


@dataclass(frozen=True)
class Suite:
    """One JUnit suite: the verdicts of one run, or those of a campaign as a whole."""

    name: str
    cases: tuple[Case, ...]
    properties: tuple[tuple[str, str], ...] = ()


def junit(directory: Path) -> str:
    """Returns the JUnit file's text for a run or campaign directory; RunDirectoryError if it is neither."""
    if (directory / "campaign.json").exists():
        return text_of(_of_campaign(directory))
    return text_of(_of_study(study_of_run(directory)))


def unfinished(name: str, reason: str) -> str:
    """Returns the JUnit file's text for a run without results: a single error with its reason."""
    return text_of([Suite(name, (Case("run", name, "error", reason),))])


def text_of(suites: Iterable[Suite]) -> str:
    """Returns the suites as JUnit XML."""
    root = ElementTree.Element("testsuites", name="vnet")
    for suite in suites:
        counts = {
            word: sum(case.word == word for case in suite.cases) for word in ("failure", "error", "skipped")
        }
        element = ElementTree.SubElement(
            root,
            "testsuite",
            name=_legal(suite.name),
            tests=str(len(suite.cases)),
            failures=str(counts["failure"]),
            errors=str(counts["error"]),
            skipped=str(counts["skipped"]),
        )
        if suite.properties:
            listed = ElementTree.SubElement(element, "properties")
            for key, value in suite.properties:
                ElementTree.SubElement(listed, "property", name=key, value=_legal(value))
        for case in suite.cases:
            _case(element, suite, case)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _case(element: ElementTree.Element, suite: Suite, case: Case) -> None:
    where = f"{_legal(suite.name)}.{case.of}"
    made = ElementTree.SubElement(element, "testcase", classname=where, name=_legal(case.name))
    reason = _legal(case.reason)
    if case.word == "passed":
        if reason:
            ElementTree.SubElement(made, "system-out").text = reason
    else:
        ElementTree.SubElement(made, case.word, message=reason).text = reason


def _legal(text: str) -> str:
    """Returns the text with every character that XML cannot hold, such as a control character,
    replaced by "?".
    """
    return "".join(
        c if c in "\t\n" or (c >= " " and not "\ud800" <= c <= "\udfff" and c < "\ufffe") else "?"
        for c in text
    )


def _of_study(study: Study) -> Iterator[Suite]:
    judged, of_whole = read_or_made(study)
    whole = tuple(map(_case_of, of_whole))
    for cell in study.cells:
        cases = (*_run(cell), *map(_case_of, judged[cell.name]), *(whole if study.single else ()))
        yield Suite(cell.run.lab if study.single else cell.name, cases, _properties(cell))
    if not study.single and whole:
        yield Suite(study.title, whole)


def _of_campaign(directory: Path) -> Iterator[Suite]:
    planned = regular.read_json(directory / "campaign.json")
    names = [str(cell["cell"]) for cell in planned["cells"]]
    if not (directory / "cells.jsonl").exists():
        yield from (_not_run(name) for name in names)
        return
    study = study_of_campaign(directory)
    yield from _of_study(study)
    for line in study.failed:
        reason = f"{line.get('state')}: {line.get('error') or 'asked to stop'}"
        yield Suite(str(line["cell"]), (Case("run", "complete", "error", reason),))
    ended = {cell.name for cell in study.cells} | {str(line["cell"]) for line in study.failed}
    yield from (_not_run(name) for name in names if name not in ended)


def _not_run(name: str) -> Suite:
    return Suite(name, (Case("run", "complete", "skipped", "has not been run, or cannot be read"),))


def _run(cell: Cell) -> Iterator[Case]:
    """Yields a case on whether the run is complete and, if it is, one on whether its figures can be trusted;
    a suspect run makes the second case an error.
    """
    manifest = cell.run.manifest
    state = manifest.state
    if state != "complete":
        why = "no end is recorded" if state in ("", "running") else "asked to stop"
        yield Case("run", "complete", "error", f"{state or None}: {manifest.error or why}")
        return
    yield Case("run", "complete", "passed")
    doubts = [w for w in manifest.warnings if w.get("suspect")]
    reason = "\n".join(f"{w.get('text')}; {w.get('remedy')}" for w in doubts)
    yield Case("run", "not suspect", "error" if manifest.suspect else "passed", reason)


def _case_of(one: Judged) -> Case:
    return Case(one.of, one.name, WORDS.get(one.verdict, "skipped"), one.reason)


def _properties(cell: Cell) -> tuple[tuple[str, str], ...]:
    manifest = cell.run.manifest
    given = {"run_dir": cell.run.path, "seed": manifest.seed, "suspect": manifest.suspect}
    return tuple((key, str(value)) for key, value in given.items() if value is not None)
