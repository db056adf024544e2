"""Tests that the intervals between a transfer's records are compared with one second only if the transfer is
fast enough to have data in each second.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from capture.conservation.evidence import Evidence
from capture.conservation.transfers import records_are_a_second_apart

SECOND = 1_000_000_000


def evidence(bps: float | None, step_ns: int) -> Evidence:
    """Returns a transfer of datagrams of 1400 B at the rate `bps` with six records at its receiver."""
    session = SimpleNamespace(endpoint="a.out")
    role = SimpleNamespace(kind="bulk", spec={"protocol": "udp", "rate_bps": bps}, session=session)
    flow = SimpleNamespace(name="a.out", sender="a.out", payload=SimpleNamespace(bytes=1400))
    plan = SimpleNamespace(flows=[flow], sessions=lambda: [("a", role, session)])
    times = {"t_ns": [place * step_ns for place in range(6)], "flow": 0, "name": "a.out", "leg": 1}
    rows: Any = pl.DataFrame(times | {"endpoint": "b.in"})
    return cast("Evidence", SimpleNamespace(transfers=rows, plan=plan))


@pytest.mark.parametrize("bps", [None, 1e6, 56_000.0])
def test_a_transfer_with_bytes_in_each_second_is_compared(bps: float | None) -> None:
    (one,) = records_are_a_second_apart(evidence(bps, 11 * SECOND)).compared
    assert (one.figure, one.count) == (11 * SECOND, SECOND)


def test_a_datagram_in_eleven_seconds_has_a_record_in_eleven() -> None:
    found = records_are_a_second_apart(evidence(1000.0, 11 * SECOND))
    assert not found.compared and found.left_out
