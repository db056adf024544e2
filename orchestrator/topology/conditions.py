"""Reads expectations that come from outside the `expect` section of a file: from `--fail-if`, `vnet expect`,
pytest, and the searches of a campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from contract.metrics import METRICS

from ..language import condition, units
from ..language.problem import Problem, TopologyError, shown
from ..language.source import Document, Path
from .checks.expect import chosen, examine, nearest
from .checks.report import Report
from .document import File
from .expect import Expect, Stated
from .search import Search
from .until import PLACE, Until
from .validation import problems_of

FAIL_IF = "--fail-if"
Read = Callable[[str], dict[str, Any]]


def failing(texts: Sequence[str]) -> Stated:
    """Returns for each condition the expectation that the condition does not come true; raises TopologyError
    if a condition is wrong.
    """
    return _read(texts, FAIL_IF, lambda text: condition.negated(condition.mapping(text)))


def expected(texts: Sequence[str], place: str) -> Stated:
    """Returns the expectations in lines of text; `place` names them in error messages. Raises TopologyError
    if one is wrong.
    """
    return _read(texts, place, condition.mapping)


def _read(texts: Sequence[str], place: str, read: Read) -> Stated:
    found, problems = [], []
    source = Document(place, {}, {(): 0})  # represents the file in error messages
    for index, text in enumerate(texts):
        try:
            found.append(read(text))
        except units.UnitError as error:
            path = ("expect", index)
            problems.append(source.problem(path, shown(text), error.rule, error.remedy))
    if not problems:
        problems = _wrong(found, source)
    if problems:
        raise TopologyError(problems)
    expects = File.model_validate({"name": "conditions", "expect": found}).expect
    return Stated(source, tuple((("expect", index), one) for index, one in enumerate(expects)))


def goals(
    searches: Mapping[str, Search], until: Until | None, source: Document
) -> tuple[Stated, list[Problem]]:
    """Returns the conditions of a campaign's searches and of `until`, and the problems in them that need no
    plan.
    """
    report = Report(source, File.model_validate({"name": "goals"}), {}, frozenset())
    written: list[tuple[Path, Expect]] = []
    for name, search in searches.items():
        place: Path = ("campaign", "search", name)
        if not search.holds and not search.expect:
            report.add(place, None, "has no condition", "write `expect:` with what a run must keep")
        for index, bound in enumerate(search.holds):
            if bound.metric not in METRICS:
                rule, remedy = "is no metric of summary.json", nearest(bound.metric)
                report.add((*place, "holds", index, "metric"), bound.metric, rule, remedy)
        for index, one in enumerate(search.expect):
            written.append(((*place, "expect", index), one))
            examine(report, written[-1][0], one)
    if until is not None:
        written.append((PLACE, until.chooses()))
        if until.during is not None and until.after is not None:
            report.add((*PLACE, "after"), until.after, "stands beside `during`", "write one of the two")
        chosen(report, *written[-1])
    return Stated(source, tuple(written)), report.problems


def _wrong(found: list[dict[str, Any]], source: Document) -> list[Problem]:
    data = {"name": "conditions", "expect": found}
    try:
        model = File.model_validate(data)
    except ValidationError as error:
        return problems_of(error, File, source)
    report = Report(source, model, {}, frozenset())
    for index, one in enumerate(model.expect):
        examine(report, ("expect", index), one)
    return report.problems
