"""Checks the capture filters of a topology file with tcpdump; without tcpdump, accepts every filter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capture.tcpdump import fault
from contract.plan import Plan
from orchestrator.language.problem import Problem, TopologyError, shown
from orchestrator.language.source import Document, read_document
from orchestrator.topology.loading import read_bytes

PARAMETER = "${"
REMEDY = 'write a filter as pcap-filter(7) has it, for example "tcp port 1883"'


def planned(plan: Plan) -> list[Problem]:
    """Returns one Problem for each capture filter of the plan that tcpdump refuses, with its line in the
    topology file; the line is 0 if that file cannot be read any more.
    """
    wrong = _refused((point.name, point.filter) for point in plan.captures)
    return _problems(plan.topology, wrong) if wrong else []


def written(document: Document) -> list[Problem]:
    """As `planned`, for a file that has other errors and therefore no plan.

    Leaves out filters with `${` parameters, and those that the check of the file refuses itself.
    """
    data: Any = document.data
    points = data.get("captures") if isinstance(data, dict) else None
    filters = [
        (name, text)
        for name, point in (points.items() if isinstance(points, dict) else ())
        if isinstance(point, dict) and isinstance(text := point.get("filter"), str) and PARAMETER not in text
        and not text.startswith("-") and text.isprintable()  # the check of the file refuses others
    ]  # fmt: skip
    return [_problem(document, name, *why) for name, why in _refused(filters).items()]


def _refused(filters: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    found = {name: (text, fault(text)) for name, text in filters if text}
    return {name: (text, why) for name, (text, why) in found.items() if why is not None}


def _problems(file: str, wrong: dict[str, tuple[str, str]]) -> list[Problem]:
    try:
        document = read_document(file, read_bytes(file))
    except TopologyError:  # the file may have been removed since the plan was made
        found = {name: _words(*why) for name, why in wrong.items()}
        return [Problem(file, 0, f"captures.{name}.filter", *words) for name, words in found.items()]
    return [_problem(document, name, *why) for name, why in wrong.items()]


def _problem(document: Document, name: str, text: str, why: str) -> Problem:
    return document.problem(("captures", name, "filter"), *_words(text, why))


def _words(text: str, why: str) -> tuple[str, str, str]:
    return shown(text), f"tcpdump refuses the filter: {why}", REMEDY
