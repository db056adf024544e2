"""Tests the queue kind `sfq`: its mistakes in files, changes, and its effect on messages beside a greedy
transfer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from queue_traffic import FAST, FRAME_NS, greedy_and_sparse, topology
from virtual_place import Place, kernel_missing

from contract.plan import Impairment
from orchestrator.queueing import change_text, set_text
from orchestrator.queueing.settings import discipline
from orchestrator.queueing.sfq import QUEUE_KIND, Sfq

MS = 10**6
DELAY_NS, FAST_BPS = 5 * MS, 5_000_000
PAIRS = {
    "turns": greedy_and_sparse("turns", {**FAST, "queue": {"sfq": {"limit": 500}}}),
    "deep": greedy_and_sparse("deep", {**FAST, "limit": 1000}),
}


def wanted(limit: int, depth: int) -> Impairment:
    return Impairment(rate_bps=10**7, frame_bytes=1514, queue=discipline("sfq", Sfq(limit, depth)))


def test_a_limit_that_no_queues_can_hold_is_refused() -> None:
    (fault,) = QUEUE_KIND.faults(wanted(128, 1))
    assert fault.at == ("limit",) and "127 queues of 1" in fault.rule
    assert not list(QUEUE_KIND.faults(wanted(127, 1)))


def test_tc_gets_every_setting_and_a_change_of_them_creates_the_queue_anew() -> None:
    before = wanted(300, 100)
    assert "sfq limit 300 depth 100 flows 127 quantum 1514" in set_text("wan", before)
    assert " del " in change_text("wan", before, wanted(200, 100))
    faster = dataclasses.replace(before, rate_bps=2 * 10**7)
    assert " del " not in change_text("wan", before, faster) and "sfq" not in change_text(
        "wan", before, faster
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of a run in virtual time."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("sfq"))
    (place.cwd / "sfq.yaml").write_text(topology("sfq", PAIRS))
    yield place.run("--json", file="sfq.yaml").run_dir


def latency_ns(run: Path, pair: str, quantile: float) -> float:
    found = pl.read_parquet(run / "messages.parquet").filter(sender=f"{pair}-source-high")
    value = found["latency_ns"].quantile(quantile)
    assert value is not None
    return value


@pytest.mark.uml
@pytest.mark.timeout(120)
def test_messages_wait_for_two_frames_of_the_other_flow(run: Path) -> None:
    """Shows that a message waits for the frame being sent and for the one that the token bucket has taken."""
    assert latency_ns(run, "turns", 0.99) < DELAY_NS + 2 * FRAME_NS / FAST_BPS
    assert latency_ns(run, "deep", 0.5) > 200 * MS
