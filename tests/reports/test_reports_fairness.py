"""Tests Jain's index and shares of bulk transfers, and rates of connections, against values
computed by hand.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import run_of

from reports.metrics.connections import connection_metrics
from reports.metrics.fairness import fairness_metrics, jain, shared_rates
from reports.metrics.metric import Of, find
from reports.rundir import Run

S = 10**9
COLUMNS = ("name", "class", "leg", "t_ns", "bytes", "bps", "rtt_ns", "retransmits", "lost", "packets")


def transfers(**flows: tuple[str, int, int, int]) -> Run:
    """Returns a run with flows of (class, first second, last second, Mbit/s), counted once a second at the
    receiver.
    """
    rows = [
        (name, group, 1, second * S, (second - first) * mbps * 125_000, mbps * 1e6, None, None, None, None)
        for name, (group, first, last, mbps) in flows.items()
        for second in range(first, last + 1)
    ]
    return run_of(transfers=pl.DataFrame(rows, schema=list(COLUMNS), orient="row"))


def test_shares_and_fairness_count_the_time_in_which_all_send() -> None:
    # 12, 4, 4 and 4 Mbit/s from 6 to 20 s: (24)^2 / (4 x (144 + 3 x 16)) = 576 / 768
    run = transfers(a=("x", 0, 20, 12), b=("x", 2, 22, 4), c=("y", 4, 30, 4), d=("y", 6, 25, 4))
    rows = shared_rates(run)
    assert rows is not None and rows["t_ns"].to_list() == [s * S for s in range(7, 21)]
    assert rows["a"].to_list() == pytest.approx([12e6] * 14)
    found = fairness_metrics(run)
    index, second = find(found, "fairness", Of()), find(found, "fairness_by_second", Of())
    assert index is not None and index.value == pytest.approx(0.75) and index.n == 4
    assert second is not None and second.value == pytest.approx(0.75)
    shares = {m.of.traffic_class: m.value for m in found if m.name == "share"}
    assert shares == {"x": pytest.approx(100 * 16 / 24), "y": pytest.approx(100 * 8 / 24)}


@pytest.mark.parametrize(
    "run",
    [transfers(a=("x", 0, 20, 5)), transfers(a=("x", 0, 9, 5), b=("x", 9, 20, 5)), run_of()],
    ids=["one alone", "one after the other", "none"],
)
def test_without_two_at_a_time_there_is_nothing_to_share(run: Run) -> None:
    assert fairness_metrics(run) == []


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.floats(0.001, 1000))
def test_the_index_lies_between_one_nth_and_one_and_knows_no_unit(rates: list[float], unit: float) -> None:
    values = np.array([rate if rate > 1e-3 else 0.0 for rate in rates])
    index = float(jain(values))
    assert 1 / len(rates) - 1e-9 <= index <= 1 + 1e-9
    assert float(jain(values * unit)) == pytest.approx(index)
    assert float(jain(np.full(len(rates), 7.0))) == pytest.approx(1)


def test_a_rate_of_connections_is_that_of_the_data() -> None:
    """Shows that goodput quantiles are weighted by data: one connection of 10 MB counts more than three of 1
    kB.
    """
    rows = []
    for stream, size in enumerate((10_000_000, 1000, 1000, 1000)):
        ways = {
            f"{way}_{name}": 0 for way in ("forward", "reverse") for name in ("packets", "retransmissions")
        }
        srtt = {"forward_srtt_ns": None, "reverse_srtt_ns": None}
        row = {
            "stream": stream,
            "src": "a",
            "src_port": 1,
            "dst": "b",
            "dst_port": 2,
            "app": None,
            "end": "fin",
        }
        times = {"first_ns": 0, "last_ns": 10 * S, "syn_synack_ns": 1, "synack_ack_ns": 1}
        rows.append(
            {**row, **times, **ways, **srtt, "forward_payload_bytes": size, "reverse_payload_bytes": 0}
        )
    table = pl.DataFrame(rows, schema_overrides={"forward_srtt_ns": pl.Int64, "reverse_srtt_ns": pl.Int64})
    run = run_of()
    run.connections["lan"] = table
    found = find(connection_metrics(run), "connection_rate_p50", Of(capture="lan"))
    assert found is not None and found.value == pytest.approx(8) and found.n == 4
