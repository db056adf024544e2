"""Tests the queue kind `fq`: its mistakes in files, its `tc` text, and its ECN marks for a sender
with DCTCP.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from queue_traffic import FAST, FRAME_NS, greedy_and_sparse, topology
from virtual_place import Place, kernel_missing

from contract.plan import Impairment
from orchestrator.queueing import mismatches, parts, set_text
from orchestrator.queueing.fq import MARKED_AT, NEVER_US, QUEUE_KIND, Fq
from orchestrator.queueing.settings import discipline

MS = 10**6
DELAY_NS, FAST_BPS = 5 * MS, 5_000_000


def dctcp(pair: str, queue: dict[str, Any]) -> dict[str, Any]:
    """Returns a pair with a greedy transfer that uses DCTCP, and few messages beside it."""
    found = greedy_and_sparse(pair, {**FAST, **queue})
    ecn = "net.ipv4.tcp_ecn=1"
    found["source"]["ecn"] = {"command": ["sysctl", "-w", ecn], "at_end": "exited"}
    found["sink"]["ecn"] = {"command": ["sysctl", "-w", ecn], "at_end": "exited"}
    found["source"]["low"] = {"bulk": {"to": f"{pair}-sink", "congestion": "dctcp"}}
    return found


PAIRS = {
    "turns": greedy_and_sparse("turns", {**FAST, "queue": {"fq": {"flow_limit": 500}}}),
    "marks": dctcp("marks", {"queue": {"fq": {"ce_threshold": "10 ms", "flow_limit": 500}}}),
    "deep": dctcp("deep", {"limit": 500}),
}


def wanted(limit: int = 1000, flow_limit: int = 100, threshold_ns: int = 0) -> Impairment:
    settings = Fq(limit, flow_limit, threshold_ns)
    return Impairment(rate_bps=10**7, frame_bytes=1514, queue=discipline("fq", settings))


def test_a_flow_limit_above_the_limit_is_refused() -> None:
    (fault,) = QUEUE_KIND.faults(wanted(100, 101))
    assert fault.at == ("flow_limit",) and "is above `limit`, 100" in fault.rule
    (fault,) = QUEUE_KIND.faults(wanted(threshold_ns=NEVER_US * 1000))
    assert fault.at == ("ce_threshold",)
    assert not list(QUEUE_KIND.faults(wanted(100, 100, MS)))


def test_tc_gets_every_setting_and_the_counter_of_marks_has_its_place() -> None:
    text = set_text("wan", wanted(1000, 90, MS))
    assert "fq limit 1000 flow_limit 90 quantum 1514 initial_quantum 1514 nopacing ce_threshold 1ms" in text
    assert f"ce_threshold {NEVER_US}us" in set_text("wan", wanted()), "a change takes the threshold away"
    assert [part.marked_at for part in parts(wanted())] == [MARKED_AT]
    assert QUEUE_KIND.packets(wanted(70, 70)) == 70


@pytest.mark.parametrize(
    ("shown", "field"),
    [
        ({"limit": 900}, "queue limit"),
        ({"flow_limit": 1}, "queue flow_limit"),
        ({"quantum": 1}, "queue quantum"),
        ({"initial_quantum": 1}, "queue initial_quantum"),
        ({"pacing": True}, "queue pacing"),
        ({"ce_threshold": 1500}, "queue ce_threshold"),
        ({"ce_threshold": None}, "queue ce_threshold"),
    ],
)
def test_a_setting_that_the_kernel_shows_otherwise_is_told(shown: dict[str, Any], field: str) -> None:
    quanta = {"quantum": 1514, "initial_quantum": 1514}
    options = {"limit": 1000, "flow_limit": 100, **quanta, "pacing": False, "ce_threshold": 1000}
    entries: list[dict[str, Any]] = [{"handle": "3:", "kind": "fq", "options": {**options, **shown}}]
    assert [one[0] for one in QUEUE_KIND.mismatches(wanted(threshold_ns=MS), entries)] == [field]
    entries[0]["options"] = options
    assert not QUEUE_KIND.mismatches(wanted(threshold_ns=MS), entries)
    assert mismatches(wanted(), [], "wan")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of a run in virtual time."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("fq"))
    (place.cwd / "fq.yaml").write_text(topology("fq", PAIRS))
    yield place.run("--json", file="fq.yaml").run_dir


def latency_ns(run: Path, pair: str, quantile: float) -> float:
    found = pl.read_parquet(run / "messages.parquet").filter(sender=f"{pair}-source-high")
    value = found["latency_ns"].quantile(quantile)
    assert value is not None
    return value


def round_trip_ns(run: Path, pair: str) -> float:
    """Returns the median round trip that the transfer's sender had, without its first two seconds."""
    table = pl.read_parquet(run / "transfers.parquet").filter(name=f"{pair}-source.low", leg=0)
    value = table.sort("t_ns")["rtt_ns"].drop_nulls()[2:].median()
    assert isinstance(value, int | float)
    return value


@pytest.mark.uml
@pytest.mark.timeout(240)
def test_messages_wait_for_two_frames_of_the_other_flow(run: Path) -> None:
    """Shows that a message waits for the frame being sent and for the one that the token bucket has taken."""
    assert latency_ns(run, "turns", 0.99) < DELAY_NS + 2 * FRAME_NS / FAST_BPS
    assert latency_ns(run, "deep", 0.5) > 100 * MS


@pytest.mark.uml
@pytest.mark.timeout(240)
def test_dctcp_holds_its_own_wait_near_the_threshold(run: Path) -> None:
    assert round_trip_ns(run, "marks") < 2 * DELAY_NS + 25 * MS < 100 * MS < round_trip_ns(run, "deep")
    marked = pl.read_parquet(run / "links.parquet").filter(
        pl.col("class") == "fq", link="marks", direction="forward"
    )["marked"].max()  # fmt: skip
    assert isinstance(marked, int) and marked > 10
