"""Renders bounds as a text table with one row for each traffic class, and as JSON data with one row for each
flow.
"""

from __future__ import annotations

import math
from typing import Any

from ...language.units import text_ns
from ..render import table
from .report import Bounds, FlowBound


def render_bounds(found: Bounds) -> str:
    """Returns a table with one row for each traffic class (least and worst delay, deadline and largest share,
    or the reason why there is no bound), and the assumptions. Without flows a sentence replaces the table.
    """
    classes: dict[str, list[FlowBound]] = {}
    for one in found.flows:
        classes.setdefault(one.flow.traffic_class, []).append(one)
    header = ("class", "flows", "least", "worst delay", "deadline", "most of it at")
    rows = [_row(name, members) for name, members in classes.items()]
    shown = table(
        f"Bounds of lab {found.lab} (network calculus, total flow analysis with grouping)", header, rows
    )
    said = "".join(f"  {line}\n" for line in found.assumptions)
    return (
        shown or "No flow of the file is accounted for: nothing to bound\n"
    ) + f"Taken for granted\n{said}"


def _row(name: str, members: list[FlowBound]) -> tuple[str, ...]:
    """Returns the row of one class: the least delay of its flows and the worst of its bounds, or the first
    flow without a bound.
    """
    open_ended = next((one for one in members if one.bound.worst_s is None), None)
    worst = open_ended or max(members, key=lambda one: one.bound.worst_s or 0.0)
    least = min(one.bound.least_s for one in members)
    due = _due(worst)
    if worst.bound.worst_s is None:
        return (name, str(len(members)), "-", f"no bound, because {worst.bound.why}", due, "-")
    place, share = max(worst.bound.parts, key=lambda part: part[1], default=("no link", 0.0))
    most = f"{place} ({_text(share)})"
    return (name, str(len(members)), _text(least), _text(worst.bound.worst_s), due, most)


def _due(one: FlowBound) -> str:
    """Returns the flow's deadline as text with a verdict: `certain` if the worst delay meets it, `never met`
    if the least delay exceeds it, else `not certain`; "-" without a deadline.
    """
    if not one.flow.deadline_ns:
        return "-"
    verdict = "never met" if one.hopeless else "not certain" if one.late else "certain"
    return f"{text_ns(one.flow.deadline_ns)}, {verdict}"


def _text(seconds: float) -> str:
    """Formats seconds, rounded up to a microsecond so that the text is still a bound."""
    return text_ns(math.ceil(round(seconds * 1e6, 3)) * 1000)


def as_document(found: Bounds) -> dict[str, Any]:
    """Returns the bounds and assumptions as JSON data in nanoseconds: worst delays rounded up, least delays
    rounded down.
    """
    return {
        "lab": found.lab,
        "bounds": [_plain(one) for one in found.flows],
        "assumptions": list(found.assumptions),
    }


def _plain(one: FlowBound) -> dict[str, Any]:
    worst = one.bound.worst_s
    return {
        "flow": one.flow.name,
        "class": one.flow.traffic_class,
        "receiver": one.receiver,
        "least_ns": math.floor(round(one.bound.least_s * 1e9, 3)),
        "worst_ns": None if worst is None else math.ceil(round(worst * 1e9, 3)),
        "no_bound_because": one.bound.why or None,
        "deadline_ns": one.flow.deadline_ns or None,
        "certain": None if not one.flow.deadline_ns else not one.late,
        "parts": [{"at": name, "worst_ns": math.ceil(share * 1e9)} for name, share in one.bound.parts]
        if worst is not None
        else [],
    }
