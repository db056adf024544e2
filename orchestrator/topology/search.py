"""Searches, in a campaign, for the largest value of a parameter at which a run keeps its bounds.

The method is that of RFC 2544 (section 26.1) for throughput, with a run as a trial. The value is doubled from
the least one until a trial fails. Then it is the geometric mean of the largest value that passed and the
least value that failed. The same runs can search for several parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from ..language.problem import Problem
from ..language.scalars import Base, Positive, Share, text
from ..language.source import Document
from .expect import Line, or_lines


class Bound(Base):
    """A bound on a metric of a run; every named class must keep it."""

    metric: str = Field(
        description="Metric of summary.json: latency_p99 (ms), messages_lost, messages_unsent ..."
    )
    classes: list[str] = Field(min_length=1, description="Traffic classes; one without the metric fails.")
    at_most: float = Field(description="Largest value, in the metric's unit.")


class Search(Base):
    """The largest value of a parameter at which all bounds hold; each of its trials is a run."""

    low: Positive = Field(alias="from", description="Least value, which the first run has.")
    high: Positive = Field(alias="to", description="Largest value.")
    resolution: Share = Field(
        text("5 %"), gt=0, lt=1, description="Precision of the value at which the search ends."
    )
    holds: list[Bound] = Field(default_factory=list, description="Largest values that a run must keep.")
    expect: list[Line] = Field(
        default_factory=list,
        description=(
            "Expectations that a run must meet, as in `expect` of a topology; a run that does not decide "
            "one fails the search's test."
        ),
        json_schema_extra=or_lines,
    )


@dataclass(frozen=True)
class Trial:
    """One further run of a combination of topology and levels, and the parameter values that it tries."""

    topology: str
    levels: Mapping[str, Any]
    number: int  # number from 1 in each combination
    values: Mapping[str, int]  # parameter -> value


def wrong(searches: Mapping[str, Search], document: Document) -> Iterator[Problem]:
    """Yields a problem for each search whose range is empty."""
    for name, search in searches.items():
        place = ("campaign", "search", name)
        if search.high <= search.low:
            value = f"{search.low} to {search.high}"
            yield document.problem(place, value, "is no range", "write the smaller value at `from`")


def following(search: Search, tried: Mapping[int, bool]) -> int | None:
    """Returns the next value to try, from the results so far (value -> True if the expectations held there).

    Returns None when the search is over: the least value failed, the largest held, or the largest value that
    held and the smallest that failed are within the resolution.
    """
    if not tried:
        return search.low
    passed = largest(tried)
    failed = min((value for value, held in tried.items() if not held), default=None)
    if passed is None or passed == search.high:
        return None
    if failed is None:
        return min(search.high, 2 * passed)
    middle = round(math.sqrt(passed * failed))
    within = failed - passed <= search.resolution * failed
    return None if within or not passed < middle < failed else middle


def largest(tried: Mapping[int, bool]) -> int | None:
    """Returns the largest value that passed and is below the least one that failed; None if there is none."""
    failed = min((value for value, held in tried.items() if not held), default=math.inf)
    return max((value for value, held in tried.items() if held and value < failed), default=None)


def next_values(
    searches: Mapping[str, Search], tried: Mapping[str, Mapping[int, bool]]
) -> dict[str, int] | None:
    """Returns the parameter values of the next trial, from the results so far; None if all searches are over.

    A parameter whose own search is over has its least value.
    """
    found = {name: following(search, tried.get(name, {})) for name, search in searches.items()}
    if all(value is None for value in found.values()):
        return None
    return {name: value or searches[name].low for name, value in found.items()}
