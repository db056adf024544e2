"""Tests the queue kind `codel`: its mistakes, and its effect on messages beside a greedy transfer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from queue_traffic import FAST, greedy, greedy_and_sparse, topology
from virtual_place import Place, kernel_missing

from contract.plan import Impairment
from orchestrator.queueing import parts, set_text
from orchestrator.queueing.codel import MARKED_AT, QUEUE_KIND, Codel
from orchestrator.queueing.settings import discipline

MS = 10**6
PAIRS = {
    "short": greedy_and_sparse("short", {**FAST, "queue": {"codel": {}}}),
    "deep": greedy_and_sparse("deep", {**FAST, "limit": 1000}),
    "marks": greedy("marks", {**FAST, "queue": {"codel": {"ecn": True}}}, ecn=True),
}


def wanted(*settings: int) -> Impairment:
    return Impairment(rate_bps=10**7, queue=discipline("codel", Codel(*settings, ecn=False)))


@pytest.mark.parametrize(("target", "rule"), [(0, "is 0"), (100 * MS, "not below"), (101 * MS, "not below")])
def test_a_target_that_cannot_work_is_refused(target: int, rule: str) -> None:
    (fault,) = QUEUE_KIND.faults(wanted(1000, target, 100 * MS))
    assert fault.at == ("target",) and rule in fault.rule
    assert not list(QUEUE_KIND.faults(wanted(1000, 5 * MS, 100 * MS)))


def test_tc_gets_every_setting_and_the_counter_of_marks_has_its_place() -> None:
    text = set_text("wan", wanted(70, 5 * MS, 100 * MS))
    assert "codel limit 70 target 5ms interval 100ms noecn" in text
    assert QUEUE_KIND.packets(wanted(70, 5 * MS, 100 * MS)) == 70
    assert [part.marked_at for part in parts(wanted(70, 5 * MS, 100 * MS))] == [MARKED_AT]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of a run in virtual time."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("codel"))
    (place.cwd / "codel.yaml").write_text(topology("codel", PAIRS))
    yield place.run("--json", file="codel.yaml").run_dir


def median_ns(run: Path, pair: str) -> float:
    found = pl.read_parquet(run / "messages.parquet").filter(sender=f"{pair}-source-high")
    value = found["latency_ns"].median()
    assert isinstance(value, int | float)
    return value


@pytest.mark.uml
@pytest.mark.timeout(120)
def test_messages_wait_for_a_short_queue_in_place_of_a_long_one(run: Path) -> None:
    assert median_ns(run, "short") < 30 * MS  # the delay is 5 ms, codel's target 5 ms, a frame takes 2.4 ms
    assert median_ns(run, "deep") > 200 * MS


@pytest.mark.uml
@pytest.mark.timeout(120)
def test_a_sender_with_ecn_is_marked_and_sends_nothing_again(run: Path) -> None:
    table = pl.read_parquet(run / "links.parquet").filter(
        pl.col("class") == "codel", link="marks", direction="forward"
    )
    marked = table["marked"].max()
    assert isinstance(marked, int) and marked > 10
    again = pl.read_parquet(run / "transfers.parquet").filter(name="marks-source.tcp", leg=0)
    assert again["retransmits"].max() == 0
