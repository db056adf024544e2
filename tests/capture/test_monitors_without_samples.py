"""Tests that a link which no sample describes is not one below its rate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from capture.monitors import queues

S, MBIT = 10**9, 10**6


@pytest.mark.parametrize(
    ("times", "state"), [((1, 2, 3), "below"), ((1,), "cannot tell"), ((), "cannot tell")]
)
def test_a_share_needs_samples(monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...], state: str) -> None:
    """The first sample of a direction has no beginning, so one alone tells nothing."""
    monkeypatch.setattr(queues.requested, "rates", lambda *_: {("wan", "forward"): [(0, MBIT)]})
    rows = [
        {"t_ns": t * S, "link": "wan", "direction": "forward", "bps": 1000.0, "backlog_packets": 0}
        for t in times
    ]
    kinds = {"t_ns": pl.Int64, "link": pl.String, "direction": pl.String, "bps": pl.Float64}
    links = pl.DataFrame(rows, schema={**kinds, "backlog_packets": pl.Int64})
    evidence: Any = SimpleNamespace(links=links, plan=None, events=None, impairments=None, scenario=None)
    assert queues.at_rate(evidence).state == state
