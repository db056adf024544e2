"""Lists the differences between sides besides their figures: parameters, versions, kernels,
machines, plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contract.codec import to_json
from reports.compare.side import Sample, Side

# Parts of a plan that name the lab or follow from the rest, and those that `facts` shows.
LEFT_OUT = (
    "lab", "core_netns", "seed", "topology", "parameters", "steps", "predictions", "notes", "hosts",
    "tunnels", "netns", "cgroup", "programs", "receivers",
)  # fmt: skip
MOST_VALUES = 3
MOST_PLACES = 30


@dataclass(frozen=True)
class Setting:
    """A setting whose value differs, with its value on each side."""

    name: str
    values: tuple[str, ...]
    in_plan: bool = False  # whether the setting is a value of the plan, which mostly follows from a parameter

    @property
    def change(self) -> str:
        return " -> ".join(self.values)


def settings(sides: Sequence[Side]) -> list[Setting]:
    """Returns the facts that differ between the sides, then the places in which their plans differ."""
    names = dict.fromkeys(name for side in sides for one in side.samples for name in one.facts)
    found = []
    for name in names:
        values = [_all(side, name) for side in sides]
        if any(one != values[0] for one in values):
            found.append(Setting(name, tuple(_text(one) for one in values)))
    return [*found, *_plans(sides)]


def _all(side: Side, name: str) -> list[str]:
    return sorted({one.facts.get(name, "not recorded") for one in side.samples})


def _text(values: list[str]) -> str:
    more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
    return "; ".join(values[:MOST_VALUES]) + more


def _plans(sides: Sequence[Side]) -> list[Setting]:
    """Returns the places in which the plans of the sides' first runs differ, up to MOST_PLACES. Places that
    differ only in names and numbers of lists count as one.

    A side without a recorded plan, such as a baseline, counts as "not known"; empty if fewer than two plans
    are known.
    """
    plans = [_plan(side.samples[0]) for side in sides]
    known = [plan for plan in plans if plan is not None]
    if len(known) < 2:
        return []
    found: dict[str, list[list[str]]] = {}
    for place in dict.fromkeys(place for plan in known for place in plan):
        values = ["not known" if plan is None else plan.get(place, "none") for plan in plans]
        if len(set(values) - {"not known"}) > 1:
            found.setdefault(_pattern(place), []).append(values)
    return [
        Setting(
            f"plan: {pattern}" + (f" ({len(rows)} places)" if len(rows) > 1 else ""), tuple(rows[0]), True
        )
        for pattern, rows in list(found.items())[:MOST_PLACES]
    ]


def _plan(one: Sample) -> dict[str, str] | None:
    """Returns the values of a run's plan by place, without the parts in LEFT_OUT; None for a baseline or a
    run without a plan.
    """
    if one.cell is None or not one.cell.run.planned:
        return None
    plan = one.cell.run.plan
    return dict(_flat(json.loads(to_json(plan).replace(plan.core_netns, "LAB")), ""))


def _flat(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yields place and value (as text) of nested data, without keys in LEFT_OUT; elements of lists are named
    by their `name`, or else by their number.
    """
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in LEFT_OUT:
                yield from _flat(part, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            name = part.get("name", number) if isinstance(part, dict) else number
            yield from _flat(part, f"{place}.[{name}]")
    else:
        yield place, str(value)


def _pattern(place: str) -> str:
    """Returns a place without the names and numbers in lists, so that 350 clients make one line."""
    parts = place.split(".[")
    return "".join([parts[0], *("[]" + part.partition("]")[2] for part in parts[1:])])
