"""Defines `campaign.until`: repetitions until the interval of a metric is narrow, not a fixed number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field, model_validator

from ..language import condition, units
from ..language.problem import Problem
from ..language.scalars import Base, Share, fail
from ..language.source import Document
from .expect import Chosen, Expect

PLACE = ("campaign", "until")
BARE = re.compile(r"[\w.-]*")  # a metric without class, bounds or times


class Precision(Base):
    """The metric, the wanted precision of its mean, and the limits of the number of repetitions."""

    metric: str = Field(
        description="Name in summary.json, as in `expect`; its subjects and time may follow: "
        "`latency_p99[class=control] during rain`."
    )
    interval: Share = Field(
        gt=0,
        lt=1,
        description="A setting has been repeated often enough when half the interval of the metric's mean "
        "over its repetitions is at most this share of the mean, for each value that the keys choose.",
    )
    at_least: int = Field(3, ge=2, le=1000, description="Repetitions before the first look at the interval.")
    at_most: int = Field(
        ge=2, le=1000, description="Repetitions after which a setting ends, even if its interval is wide."
    )


class Until(Chosen, Precision):
    """Repetitions of each setting until the interval of a metric's mean is narrow enough. The interval
    contains the mean with a probability of 95 %, whichever look ends the setting, since the error of 5 % is
    split evenly over all looks (Bonferroni).
    """

    @model_validator(mode="before")
    @classmethod
    def _brackets(cls, value: Any) -> Any:
        """Reads `metric: latency_p99[class=up] during rain` as `metric: latency_p99`, `class: up` and
        `during: rain`.
        """
        metric = value.get("metric") if isinstance(value, dict) else None
        if not isinstance(metric, str) or BARE.fullmatch(metric):
            return value
        try:
            found = condition.mapping(metric)
        except units.UnitError as error:
            raise fail(error.rule, error.remedy) from None
        if twice := sorted(found.keys() & (value.keys() - {"metric"})):
            raise fail(f"`{twice[0]}` stands in the brackets and as a key", "leave one of them out")
        return {**value, **found}

    def chooses(self) -> Expect:
        """Returns the expectation that chooses the same values and has no bounds."""
        kept = {name: getattr(self, name) for name in ("metric", *Chosen.model_fields)}
        return Expect.model_construct(**kept, every=10**9)


def wrong(until: Until, others: set[str], document: Document) -> Iterator[Problem]:
    """Yields the problems of the bounds, and of keys of the campaign that `until` does not go with."""
    if until.at_most < until.at_least:
        rule, remedy = f"is less than `at_least` ({until.at_least})", "write the larger number at `at_most`"
        yield document.problem((*PLACE, "at_most"), str(until.at_most), rule, remedy)
    for key, why in (
        ("repetitions", "which says how many repetitions there are"),
        ("search", "whose trials are single runs"),
    ):
        if key in others:
            yield document.problem(PLACE, "", f"conflicts with `{key}`, {why}", "leave one of them out")
