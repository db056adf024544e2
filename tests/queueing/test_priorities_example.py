"""Tests that the example with three queues side by side shows the intended effect, with a short run in
virtual time.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place, kernel_missing

pytestmark = pytest.mark.uml
DEADLINE_NS = 50_000_000  # ns, deadline of the alarms in the topology file


@pytest.fixture(scope="module")
def alarms(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Returns the messages beside the flood, once the queues are full."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("priorities"))
    run = place.run("--json", "-p", "hold=3s", file=str(PROJECT / "topologies" / "priorities.yaml")).run_dir
    messages = pl.read_parquet(Path(run) / "messages.parquet")
    return messages.filter(pl.col("scheduled_ns") > pl.col("scheduled_ns").min() + 10**9)


@pytest.mark.parametrize(("queue", "kept"), [("fifo", False), ("prio", True), ("htb", True)])
def test_alarms_keep_their_deadline_where_a_queue_serves_them(
    alarms: pl.DataFrame, queue: str, kept: bool
) -> None:
    mine = alarms.filter(pl.col("class") == f"{queue}-source.alarms")
    in_time = (mine["received_ns"] - mine["scheduled_ns"] <= DEADLINE_NS).fill_null(value=False)
    assert len(mine) >= 15
    assert in_time.all() if kept else not in_time.any()
