"""Tests the requested value that stands beside each sample of a link that plays a trace: the mean of the
trace's step function over the sample's interval.
"""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture import requested

SCHEMA = {
    "t_ns": pl.Int64, "planned_ns": pl.Int64, "link": pl.String, "direction": pl.String,
    "rate_bps": pl.Int64, "delay_ns": pl.Int64, "loss": pl.Float64,
}  # fmt: skip


def samples(times: list[int], direction: str = "forward", class_: str | None = None) -> pl.DataFrame:
    return pl.DataFrame(
        [(t, "wan", direction, class_) for t in times],
        schema={"t_ns": pl.Int64} | dict.fromkeys(("link", "direction", "class"), pl.String), orient="row",
    )  # fmt: skip


def changes(rows: list[tuple[int, int | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(t + 3, t, "wan", "forward", rate, 5, 0.5) for t, rate in rows], schema=SCHEMA, orient="row"
    )


TIMES = st.lists(st.integers(0, 300), min_size=2, max_size=12, unique=True).map(sorted)


@settings(deadline=None)
@given(TIMES, st.dictionaries(st.integers(50, 200), st.integers(0, 10**9), min_size=1, max_size=10))
def test_the_mean_is_that_of_every_nanosecond(times: list[int], steps: dict[int, int]) -> None:
    rows = sorted(steps.items())
    found = requested.beside(samples(times), changes([*rows]))["requested_bps"].to_list()
    assert found[0] is None, "the first sample has no interval"
    for n in range(1, len(times)):
        begin, end = times[n - 1], times[n]
        if begin < rows[0][0]:
            assert found[n] is None
            continue
        every = [[rate for at, rate in rows if at <= t][-1] for t in range(begin, end)]
        assert found[n] == pytest.approx(sum(every) / len(every), rel=1e-9, abs=1e-6)


def test_others_have_none() -> None:
    table = pl.concat([samples([0, 10]), samples([0, 10], "reverse"), samples([0, 10], class_="voice")])
    found = requested.beside(table, changes([(0, 7)]))
    assert found["requested_bps"].to_list() == [None, 7, None, None, None, None]
    assert found["requested_delay_ns"].to_list() == [None, 5, None, None, None, None]
    assert requested.beside(table, changes([(0, None)]))["requested_bps"].null_count() == 6, "no rate at all"
