"""Defines the keys of `hunt`: the faults and parameters with which `vnet hunt` tries to break
expectations.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ..language.scalars import Base, Positive, Span, text

Fault = Annotated[
    dict[str, Any],
    Field(
        description="An event of the timeline without `at`, with ranges such as `0.1..5 s` in place of "
        "values. With `at`, it is drawn for that moment. `schedule: true`, `clock: true`: on all nodes with "
        "programs."
    ),
]


class Limits(Base):
    """Limits of a hunt; the first that is reached ends it."""

    events: Positive = Field(4, le=20, description="Most drawn events of a trial.")
    trials: Positive = Field(
        1000, le=1_000_000, description="Trials of the search, without those of shrinking."
    )
    time: Span = Field(text("2 h"), description="Time that passes on the machine; checked after each round.")


class HuntBlock(Base):
    """The faults and parameters with which `vnet hunt` tries to break the file's expectations."""

    faults: list[Fault] | None = Field(
        None,
        min_length=1,
        description="Kinds of faults of which trials are made; without it, all kinds, on all programs and "
        "links of the file.",
    )
    vary: dict[str, Any] = Field(default_factory=dict, description="List or range of values, by parameter.")
    quiet: Span = Field(
        text("0 s"), description="Time at the end of the hold in which no fault begins or lasts."
    )
    at_most: Limits = Field(
        default_factory=lambda: Limits.model_validate({}), description="When the hunt ends."
    )
