"""Tests the queue kind `fq_pie`: its mistakes in files, its `tc` text, and its effect on a greedy
transfer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from queue_traffic import FAST, FRAME_NS, greedy, greedy_and_sparse, topology
from virtual_place import Place, kernel_missing

from contract.plan import Impairment
from orchestrator.queueing import change_text, parts, set_text
from orchestrator.queueing.fq_pie import MARKED_AT, QUEUE_KIND, FqPie
from orchestrator.queueing.settings import discipline

MS = 10**6
DELAY_NS, FAST_BPS = 5 * MS, 5_000_000
PAIRS = {
    "pie": greedy_and_sparse("pie", {**FAST, "queue": {"fq_pie": {}}}),
    "marks": greedy("marks", {**FAST, "queue": {"fq_pie": {"ecn": True}}}, ecn=True),
    "deep": greedy_and_sparse("deep", {**FAST, "limit": 1000}),
}


def wanted(flows: int = 256, target_ns: int = 15 * MS, update_ns: int = 15 * MS) -> Impairment:
    settings = FqPie(1000, flows, target_ns, update_ns, False)
    return Impairment(rate_bps=10**7, frame_bytes=1514, queue=discipline("fq_pie", settings))


def test_times_that_cannot_work_are_refused() -> None:
    (fault,) = QUEUE_KIND.faults(wanted(target_ns=0))
    assert fault.at == ("target",)
    (fault,) = QUEUE_KIND.faults(wanted(update_ns=MS - 1000))
    assert fault.at == ("tupdate",) and "below 1 ms" in fault.rule
    assert not list(QUEUE_KIND.faults(wanted()))


def test_tc_gets_every_setting_and_other_flows_create_the_queue_anew() -> None:
    text = set_text("wan", wanted())
    assert "fq_pie flows 256 limit 1000 target 15ms tupdate 15ms quantum 1514" in text
    assert "ecn_prob 10 noecn" in text
    assert " del " in change_text("wan", wanted(), wanted(flows=128))
    assert " del " not in change_text("wan", wanted(), wanted(target_ns=20 * MS))
    assert [part.marked_at for part in parts(wanted())] == [MARKED_AT]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of a run in virtual time."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("fq-pie"))
    (place.cwd / "fq-pie.yaml").write_text(topology("fq-pie", PAIRS))
    yield place.run("--json", file="fq-pie.yaml").run_dir


def latency_ns(run: Path, pair: str, quantile: float) -> float:
    found = pl.read_parquet(run / "messages.parquet").filter(sender=f"{pair}-source-high")
    value = found["latency_ns"].quantile(quantile)
    assert value is not None
    return value


@pytest.mark.uml
@pytest.mark.timeout(240)
def test_messages_wait_for_two_frames_of_the_other_flow(run: Path) -> None:
    assert latency_ns(run, "pie", 0.95) < DELAY_NS + 2 * FRAME_NS / FAST_BPS
    assert latency_ns(run, "deep", 0.5) > 200 * MS


@pytest.mark.uml
@pytest.mark.timeout(240)
def test_a_greedy_transfer_waits_for_about_the_target(run: Path) -> None:
    table = pl.read_parquet(run / "transfers.parquet").filter(name="pie-source.low", leg=0)
    median = table.sort("t_ns")["rtt_ns"].drop_nulls()[2:].median()
    assert isinstance(median, int | float) and median < 2 * DELAY_NS + 2 * 15 * MS


@pytest.mark.uml
@pytest.mark.timeout(240)
def test_a_sender_with_ecn_is_marked(run: Path) -> None:
    table = pl.read_parquet(run / "links.parquet").filter(
        pl.col("class") == "fq_pie", link="marks", direction="forward"
    )
    marked = table["marked"].max()
    assert isinstance(marked, int) and marked > 10
