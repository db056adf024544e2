"""Checks the capture filters of a topology file with tcpdump, if that is there, and whether captures can be
compressed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Any

from capture.packed import PROGRAM
from capture.tcpdump import fault
from contract.plan import Plan
from orchestrator.language.problem import Problem, shown
from orchestrator.language.source import Document
from orchestrator.topology.loading import problem_in

PARAMETER = "${"
REMEDY = 'write a filter as pcap-filter(7) has it, for example "tcp port 1883"'


def planned(plan: Plan) -> list[Problem]:
    """Returns one Problem for each capture filter of the plan that tcpdump refuses, with its line in the
    topology file; the line is 0 if that file cannot be read any more.
    """
    wrong = _refused((point.name, point.filter) for point in plan.captures)
    return [problem_in(plan.topology, _path(name), *_words(*why)) for name, why in wrong.items()]


def packing(plan: Plan, time: str) -> list[Problem]:
    """Returns one Problem for each capture that cannot be compressed as requested: in virtual time, over
    several hosts, or without zstd on this machine. Also returns one for each capture that would be sent from
    several hosts.
    """
    if plan.hosts and (sent := [point.name for point in plan.captures if point.to]):
        why = "is not done in a lab over several hosts", "leave it out"
        return [problem_in(plan.topology, ("captures", name, "to"), "", *why) for name in sent]
    wanted = [point.name for point in plan.captures if point.compress]
    if not wanted:
        return []
    if time == "virtual":
        why = "is not done in virtual time, whose labs have no such program", "leave it out"
    elif plan.hosts:
        why = "is not done in a lab over several hosts", "leave it out"
    elif shutil.which(PROGRAM) is None:
        why = "needs zstd, which is not installed", "apt-get install zstd"
    else:
        return []
    return [problem_in(plan.topology, ("captures", name, "compress"), PROGRAM, *why) for name in wanted]


def written(document: Document) -> list[Problem]:
    """Returns one Problem for each capture filter that tcpdump refuses, with its line, for a file that has
    other errors and therefore no plan.
    Leaves out filters with `${` parameters, and those that the check of the file refuses itself.
    """
    data: Any = document.data
    points = data.get("captures") if isinstance(data, dict) else None
    filters = [
        (name, text)
        for name, point in (points.items() if isinstance(points, dict) else ())
        if isinstance(point, dict) and isinstance(text := point.get("filter"), str) and PARAMETER not in text
        and not text.startswith("-") and text.isprintable()  # the check of the file refuses other texts
    ]  # fmt: skip
    return [document.problem(_path(name), *_words(*why)) for name, why in _refused(filters).items()]


def _refused(filters: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    found = {name: (text, fault(text)) for name, text in filters if text}
    return {name: (text, why) for name, (text, why) in found.items() if why is not None}


def _path(name: str) -> tuple[str, str, str]:
    return "captures", name, "filter"


def _words(text: str, why: str) -> tuple[str, str, str]:
    return shown(text), f"tcpdump refuses the filter: {why}", REMEDY
