"""Tests the effect of every kind of queue on real traffic in one run in virtual time, each kind beside a link
without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from queue_traffic import ALL, FRAME_NS, topology
from virtual_place import Place, kernel_missing

pytestmark = [pytest.mark.uml, pytest.mark.timeout(120)]
MS = 10**6
DELAY_NS = 5 * MS
SLOW_BPS, FAST_BPS = 2_000_000, 5_000_000
OVERHEAD = 1042 / 1000  # frame bytes divided by payload bytes of the floods


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of the run."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("queues"))
    (place.cwd / "queues.yaml").write_text(topology("queues", ALL))
    yield place.run("--json", file="queues.yaml").run_dir


def messages(run: Path, pair: str) -> pl.DataFrame:
    return pl.read_parquet(run / "messages.parquet").filter(sender=f"{pair}-source-high")


def latency_ns(run: Path, pair: str, quantile: float) -> float:
    found = messages(run, pair)["latency_ns"].quantile(quantile)
    assert found is not None
    return found


def lost(run: Path, pair: str) -> float:
    sent = messages(run, pair)
    return sent["received_ns"].null_count() / len(sent)


def transfers(run: Path, pair: str, leg: int) -> pl.DataFrame:
    return pl.read_parquet(run / "transfers.parquet").filter(
        pl.col("flow").is_not_null(), pl.col("name").str.starts_with(f"{pair}-source."), leg=leg
    )


def received_bps(run: Path, name: str) -> float:
    """Returns the receiver's rate (bit/s), from its records of each second without the first three and the
    last three.
    """
    legs = pl.read_parquet(run / "transfers.parquet").filter(name=name, leg=1).sort("t_ns")
    first, last = legs.row(3, named=True), legs.row(-4, named=True)
    return (last["bytes"] - first["bytes"]) * 8e9 / (last["t_ns"] - first["t_ns"])


def proof(run: Path, link: str, quantity: str) -> list[dict[str, Any]]:
    every = json.loads((run / "proof.json").read_text())
    return [j for j in every if (j["link"], j["quantity"]) == (link, quantity)]


@pytest.mark.parametrize("link", ALL)
def test_every_rate_is_proven(run: Path, link: str) -> None:
    rates = proof(run, link, "rate")
    assert [j["verdict"] for j in rates] == ["holds", "holds"]
    assert all(abs(j["measured"] / j["expected"] - 1) < 0.001 for j in rates)


def test_high_priority_waits_for_one_frame_and_loses_nothing(run: Path) -> None:
    """Shows that at twice the rate a message of the first band waits only for the frame being sent and the
    one that the token bucket has already taken.
    """
    assert lost(run, "prio") == 0
    assert latency_ns(run, "prio", 0.99) < DELAY_NS + 2 * FRAME_NS / SLOW_BPS
    low = transfers(run, "prio", 1)["lost"].max()
    assert isinstance(low, int) and low > 2000


def test_code_points_of_software_have_priority(run: Path) -> None:
    """Shows that messages over UDP and a transfer over TCP, both marked EF, are not dropped."""
    assert lost(run, "marked") == 0
    assert latency_ns(run, "marked", 0.99) < DELAY_NS + 2 * FRAME_NS / SLOW_BPS
    assert received_bps(run, "marked-source.transfer") == pytest.approx(200_000, rel=0.1)
    assert counters(run, "marked")["high"]["dropped"] == 0
    assert counters(run, "marked")["rest"]["dropped"] > 2000


def test_tags_of_802_1q_have_priority(run: Path) -> None:
    """Shows that echo requests over a tagged interface lose nothing beside a flood of twice the rate."""
    said = (run / "raw" / "logs" / "tagged-source.ping.log").read_text()
    assert "80 received, 0% packet loss" in said
    mean_ms = float(said.split("rtt min/avg/max/mdev = ")[1].split("/")[1])
    assert mean_ms < 2 * DELAY_NS / MS + 2 * FRAME_NS / SLOW_BPS / MS
    assert counters(run, "tagged")["high"]["packets"] >= 80
    assert counters(run, "tagged")["high"]["dropped"] == 0


def test_without_priority_the_same_messages_are_late_and_lost(run: Path) -> None:
    assert lost(run, "fifo") > 0.5
    assert latency_ns(run, "fifo", 1) > 100 * MS


def test_classes_get_what_they_are_guaranteed_and_not_more_than_their_ceiling(run: Path) -> None:
    """Shows that classes get their guaranteed 0.8, 2.4 and 0.32 of 4 Mbit/s, and that the capped class
    borrows nothing.
    """
    small, large, capped = (
        received_bps(run, f"htb-source.{name}") * OVERHEAD for name in ("small", "large", "capped")
    )
    assert small > 800_000
    assert large > 2_400_000
    assert capped == pytest.approx(320_000, rel=0.03)
    # the classes share the rest in proportion to their guaranteed rates
    assert large / small == pytest.approx(3, rel=0.1)
    assert small + large + capped == pytest.approx(4_000_000, rel=0.02)


def test_red_marks_what_can_be_marked_and_drops_what_cannot(run: Path) -> None:
    """Shows that both transfers fill the link, and that the one whose packets are marked
    retransmits nothing.
    """
    again = {pair: transfers(run, pair, 0)["retransmits"].max() for pair in ("marks", "drops")}
    assert again["marks"] == 0
    assert again["drops"] > 10  # type: ignore[operator]
    for pair in again:
        assert received_bps(run, f"{pair}-source.tcp") > 0.9 * FAST_BPS


@pytest.mark.parametrize("pair", ["fair", "cake"])
def test_flows_are_kept_apart(run: Path, pair: str) -> None:
    """Shows that messages beside a greedy transfer that fills the link wait for at most two frames."""
    assert lost(run, pair) == 0
    assert latency_ns(run, pair, 0.99) < DELAY_NS + 2 * FRAME_NS / FAST_BPS
    assert received_bps(run, f"{pair}-source.low") > 0.85 * FAST_BPS


def test_one_long_queue_for_all_keeps_nothing_apart(run: Path) -> None:
    assert latency_ns(run, "deep", 0.5) > 200 * MS


def counters(run: Path, link: str) -> dict[str | None, dict[str, Any]]:
    """Returns the last sample of each class of the forward direction; key None is the direction
    as a whole.
    """
    table = pl.read_parquet(run / "links.parquet").filter(link=link, direction="forward").sort("t_ns")
    return {row["class"]: row for row in table.group_by("class").last().to_dicts()}


def test_each_band_has_counters_of_its_own(run: Path) -> None:
    prio, htb, cake = (counters(run, link) for link in ("prio", "htb", "cake"))
    assert prio["high"]["packets"] >= 600 and prio["high"]["dropped"] == 0
    assert prio["rest"]["dropped"] > 2000
    assert prio[None]["dropped"] == prio["rest"]["dropped"]
    assert {*htb} == {None, "small", "large", "capped", "rest"}
    assert {*cake} == {None, "bulk", "best effort", "voice"}
    for of, columns in (
        (prio, ("packets", "bytes", "dropped")),
        (htb, ("packets", "bytes", "dropped")),
        (cake, ("packets", "dropped")),  # cake counts bytes of arriving packets, so bytes are left out
    ):
        below = [row for name, row in of.items() if name is not None]
        for column in columns:
            assert sum(row[column] for row in below) == of[None][column]


def test_marks_are_counted_apart_from_drops(run: Path) -> None:
    assert counters(run, "marks")["red"]["marked"] > 10
    assert counters(run, "drops")["red"]["marked"] == 0


def test_the_page_shows_them(run: Path) -> None:
    assert "Bands and classes of queues" in (run / "report" / "index.html").read_text()
    shown = {m["queue_class"] for m in json.loads((run / "summary.json").read_text())}
    assert {"high", "small", "fq_codel", "best effort"} <= shown
