"""Tests dates of the lab's clock: reading, writing, and wrong dates."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.plan import CLOCK_NS
from orchestrator.language.dates import date_ns, date_text
from orchestrator.language.units import UnitError
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = "name: dated\nsegments: {lan: {subnet: 10.1.0.0/24}}\nnodes: {a: {segment: lan}}\nrun: {hold: 1 s%s}\n"


@given(st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2199, 12, 31)))
def test_a_moment_is_read_as_it_is_written(moment: datetime.datetime) -> None:
    whole = moment.replace(microsecond=0)
    ns = date_ns(f"{whole.isoformat()}Z")
    assert date_text(ns) == f"{whole.isoformat()}Z" and date_ns(date_text(ns)) == ns
    assert ns == int(whole.replace(tzinfo=datetime.UTC).timestamp()) * 10**9


def test_a_date_is_its_midnight_and_a_zone_counts() -> None:
    assert date_text(date_ns("2026-11-26")) == "2026-11-26T00:00:00Z"
    assert date_text(date_ns("2026-11-26T01:30:00+02:00")) == "2026-11-25T23:30:00Z"


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01", "26.11.2026", "1989-12-31", "2200-01-01", "5"]
)
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UnitError, match="2026-11-26"):
        date_ns(text)


@pytest.mark.parametrize(
    ("key", "clock_ns"), [("", CLOCK_NS), (", clock: 2027-02-03", date_ns("2027-02-03"))]
)
def test_the_plan_has_the_files_clock(key: str, clock_ns: int) -> None:
    assert make_plan(parse("dated.yaml", (FILE % key).encode())).clock_ns == clock_ns
