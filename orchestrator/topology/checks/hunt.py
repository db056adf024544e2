"""Checks `hunt`: the faults exist for their targets, the ranges contain values, and the parameters are in the
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from ...language.problem import shown
from ...language.ranges import at, range_of
from ...language.source import Path
from ...language.units import UnitError, text_ns
from ...software.registry import kind_of
from ..actions import ACTIONS, action_of
from ..document import Event
from ..expansion import Expansion
from ..validation import problems_of
from . import timeline
from .report import Report

SHARES = (0.0, 1.0)  # the two ends of each range, which are checked
UNDRAWN = {"run", "limit", "link_up", "start"}  # actions that are not faults by themselves


def check(report: Report) -> None:
    """Checks the block `hunt` of a file; does nothing without one."""
    hunt = report.model.hunt
    if hunt is None:
        return
    known = report.phases
    if hunt.quiet and known is not None and hunt.quiet >= known.hold_ns:
        rule = "leaves no time of the hold for faults"
        report.add(
            ("hunt", "quiet"), text_ns(hunt.quiet), rule, "write a shorter one, or a longer `run.hold`"
        )
    for index, fault in enumerate(hunt.faults or ()):
        _fault(report, fault, ("hunt", "faults", index))
    for name, values in hunt.vary.items():
        _varied(report, name, values, ("hunt", "vary", name))


def everywhere(fault: Mapping[str, Any], names: Expansion) -> dict[str, Any]:
    """Returns a fault in which the target `true` is replaced by all nodes that have programs; returns any
    other fault unchanged.
    """
    programs = [
        name for name, machine in names.nodes.items()
        if any(not kind_of(one).in_agent for one in machine.software.values())
    ]  # fmt: skip
    whole = {key: programs for key in ("schedule", "clock") if fault.get(key) is True and programs}
    return {**fault, **whole}


def _fault(report: Report, fault: dict[str, Any], path: Path) -> None:
    if wrong := list(_bad_ranges(fault, path)):
        for place, value, error in wrong:
            report.add(place, shown(value), error.rule, error.remedy)
        return
    events = []
    for share in SHARES:
        try:
            events.append(Event.model_validate({"at": "hold", **at(everywhere(fault, report.names), share)}))
        except ValidationError as error:
            report.problems += problems_of(error, Event, report.document, path)
            return
    action = action_of(events[0])
    if action is None:
        listed = ", ".join(spelled for name, spelled in ACTIONS.items() if name not in UNDRAWN)
        report.add(path, None, "a fault has exactly one action", f"write one of {listed}")
        return
    if action in UNDRAWN:
        report.add(path, ACTIONS[action], "is no fault", "put it into the timeline")
        return
    before = len(report.problems)
    timeline.check_action(report, events[0], action, path)
    if len(report.problems) == before and action in ("stop", "kill", "link_down"):
        _ends(report, events[0], action, path)


def _ends(report: Report, event: Event, action: str, path: Path) -> None:
    if event.duration is None:
        rule = f"{ACTIONS[action]} without an end would hide all later events"
        report.add(path, None, rule, 'write for example `for: "0.1..5 s"`')


def _bad_ranges(value: Any, path: Path) -> Iterator[tuple[Path, Any, UnitError]]:
    """Yields the place of each range that is empty or malformed, with the error."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from _bad_ranges(part, (*path, key))
        return
    try:
        range_of(value)
    except UnitError as error:
        yield path, value, error


def _varied(report: Report, name: str, values: Any, path: Path) -> None:
    if name not in report.parameters:
        report.unknown(path, name, "parameter", set(report.parameters))
        return
    if isinstance(values, list):
        if not values:
            report.add(path, "[]", "has no value", "write the values, for example [1, 2]")
        return
    try:
        found = range_of(values)
    except UnitError as error:
        report.add(path, shown(values), error.rule, error.remedy)
        return
    if found is None:
        rule = "is neither a list nor a range"
        report.add(path, shown(values), rule, "write for example [1, 2], or 1..20")
