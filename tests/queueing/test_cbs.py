"""Tests the queue kind `cbs`: its mistakes in files, the kernel's settings against the standard's formulas,
and streams of two classes beside a flood in virtual time, against closed forms and bounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from queue_traffic import flood_and_sparse, topology
from virtual_place import Place, kernel_missing

from contract.plan import Band, Discipline, Impairment
from orchestrator.language.problem import TopologyError
from orchestrator.queueing import mismatches, parts, set_text
from orchestrator.queueing.cbs import QUEUE_KIND, waits_s
from orchestrator.topology.loading import parse
from reports.metrics.bounds import bounded
from reports.rundir import read_run

MBIT = 10**6
FILE = Path(__file__).resolve().parents[2] / "topologies" / "tsn.yaml"
SLOPE_BPS, RATE_BPS = 3 * MBIT, 10 * MBIT
FRAME_BITS = 8 * (200 + 8 + 20 + 14)  # a message of class A: payload, UDP, IP, Ethernet
BURST = 20


def wanted(*slopes: int, rate_bps: int = RATE_BPS) -> Impairment:
    bands = tuple(
        Band(f"b{i}", pcp=(7 - i,), limit_packets=50, rate_bps=s, ceil_bps=s) for i, s in enumerate(slopes)
    )
    rest = Band("rest", limit_packets=60)
    return Impairment(rate_bps=rate_bps, frame_bytes=1514, queue=Discipline("cbs", bands=(*bands, rest)))


def test_the_longest_waits_are_the_published_ones() -> None:
    """Compares with the credits of De Azua and Boyer (RTNS 2014) for two classes, written out."""
    rate, frame, a, b = 100e6, 12_000.0, 30e6, 20e6
    first, second = waits_s(rate, [a, b], frame, frame)
    assert first == frame / rate
    highest = a * frame / rate
    assert second == pytest.approx((frame + highest + frame * (1 - a / rate)) / (rate - a))
    assert waits_s(rate, [], frame, frame) == []
    assert waits_s(rate, [rate, b], frame, frame)[1] == float("inf")


def test_the_kernel_gets_slopes_for_its_port_and_credits_that_do_not_clip() -> None:
    text = set_text("wan", wanted(SLOPE_BPS, 2 * MBIT))
    # the port of a veth pair states 10 Gbit/s; 3 Mbit/s for a frame of 1514 bytes at 10 Mbit/s: 454.2 bytes
    assert "cbs idleslope 3000 sendslope -9997000 hicredit 456 locredit -1514 offload 0" in text
    assert "parent 10:1 handle 30: pfifo limit 50" in text and "handle 12: pfifo limit 60" in text
    assert [part.handle for part in parts(wanted(SLOPE_BPS))] == ["30:", "11:"]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no slope": ({"a": {"pcp": 3}, "rest": {}}, "has no band with `idle_slope`"),
    "whole rate": (
        {"a": {"pcp": 3, "idle_slope": "6 Mbit/s"}, "b": {"pcp": 2, "idle_slope": "4 Mbit/s"}, "rest": {}},
        "gives 10 Mbit/s of a rate of 10 Mbit/s",
    ),
    "order": (
        {"a": {"pcp": 3}, "b": {"pcp": 2, "idle_slope": "4 Mbit/s"}, "rest": {}},
        "stands after a, which no credit limits",
    ),
    "bits": ({"a": {"pcp": 3, "idle_slope": "1500 bit/s"}, "rest": {}}, "is no whole number of kbit/s"),
}
PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "half duplex": ({"duplex": "half"}, "a transmitter that several share states none"),
    "trace": ({"both": {"trace": "walk.csv"}}, "has slopes of a fixed rate, and a trace changes it"),
}
BANDS = {"a": {"pcp": 3, "idle_slope": "3 Mbit/s"}, "rest": {}}


def refused(bands: dict[str, Any], tmp_path: Path, link: dict[str, Any] | None = None, **node: Any) -> str:
    data = json.loads(topology("shaped", {"p": flood_and_sparse("p", {})}))
    data["links"]["p"] = {
        **data["links"]["p"], **(link or {}),
        "both": {"rate": "10 Mbit/s", "queue": {"cbs": bands}, **(link or {}).get("both", {})},
    }  # fmt: skip
    if node:
        data["nodes"]["p-source"] |= node
        data["links"]["p"]["between"] = ["p-source", "p-a"]
    (tmp_path / "walk.csv").write_text("time_s,rate_mbps\n0,10\n1,9\n")
    with pytest.raises(TopologyError) as error:
        parse(str(tmp_path / "t.yaml"), json.dumps(data).encode())
    return str(error.value)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_bands_is_refused(name: str, tmp_path: Path) -> None:
    bands, rule = MISTAKES[name]
    assert rule in refused(bands, tmp_path)


@pytest.mark.parametrize("name", PLACES)
def test_a_place_without_a_port_of_known_speed_is_refused(name: str, tmp_path: Path) -> None:
    link, rule = PLACES[name]
    assert rule in refused(BANDS, tmp_path, link)


def test_the_port_of_a_virtual_machine_is_refused(tmp_path: Path) -> None:
    assert "a virtual machine, states another" in refused(BANDS, tmp_path, kind="vm", software={})


@pytest.mark.parametrize("field", ["idleslope", "sendslope", "hicredit", "locredit"])
def test_a_setting_that_the_kernel_shows_otherwise_is_told(field: str) -> None:
    shown = {"idleslope": 3000, "sendslope": -9997000, "hicredit": 456, "locredit": -1514}
    entries = [{"dev": "wan", "handle": "10:", "kind": "cbs", "options": {**shown, field: 1}}]
    entries += [
        {"dev": "wan", "handle": h, "kind": "pfifo", "options": {"limit": n}}
        for h, n in (("30:", 50), ("11:", 60))
    ]
    assert [one[0] for one in QUEUE_KIND.wrong_leaves(wanted(SLOPE_BPS), entries)] == [f"queue b0 {field}"]
    entries[0]["options"] = shown
    assert not QUEUE_KIND.wrong_leaves(wanted(SLOPE_BPS), entries)
    assert mismatches(wanted(SLOPE_BPS), [], "wan")


def test_a_change_in_a_running_lab_must_leave_the_rest_a_share() -> None:
    assert QUEUE_KIND.impossible(wanted(SLOPE_BPS)) is None
    assert "gives 10 Mbit/s" in str(QUEUE_KIND.impossible(wanted(10 * MBIT)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of a run of topologies/tsn.yaml in virtual time."""
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("cbs"))
    yield place.run("--json", "-p", "hold=6s", file=str(FILE)).run_dir


def bursts(run: Path, pair: str) -> pl.DataFrame:
    """Returns the messages of class A: scheduled, received, number in their burst; and whether the flood was
    there.
    """
    found = pl.read_parquet(run / "messages.parquet").filter(sender=f"{pair}-talker-a").sort("seq")
    flood = pl.read_parquet(run / "messages.parquet")["scheduled_ns"].min()
    assert isinstance(flood, int)
    return found.with_columns(
        (pl.col("received_ns").diff().over("scheduled_ns")).alias("gap_ns"),
        (pl.col("scheduled_ns") - flood > 2 * 10**9).alias("flooded"),
    )


@pytest.mark.uml
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("pair", "bps"), [("shaped", SLOPE_BPS), ("strict", RATE_BPS)])
def test_a_burst_leaves_at_its_slope_and_without_a_shaper_at_the_links_rate(
    run: Path, pair: str, bps: int
) -> None:
    """Compares with the closed form: a frame follows the one before after its length divided by the rate."""
    gap_ns = bursts(run, pair).filter(~pl.col("flooded"))["gap_ns"].median()
    assert isinstance(gap_ns, float)
    assert gap_ns == pytest.approx(FRAME_BITS / bps * 1e9, rel=0.005)


@pytest.mark.uml
@pytest.mark.timeout(120)
def test_no_message_of_a_shaped_class_is_above_its_bound_beside_a_flood(run: Path) -> None:
    found = {one.traffic_class: one for one in bounded(read_run(run)) if one.worst_ns is not None}
    assert found.keys() == {"strict-a", "strict-b", "shaped-a", "shaped-b"}
    assert [one for one in found.values() if not one.count or one.over] == []


@pytest.mark.uml
@pytest.mark.timeout(120)
def test_the_lower_class_waits_less_behind_a_shaped_burst(run: Path) -> None:
    messages = pl.read_parquet(run / "messages.parquet")
    worst = {p: messages.filter(sender=f"{p}-talker-b")["latency_ns"].max() for p in ("strict", "shaped")}
    assert isinstance(worst["strict"], int) and isinstance(worst["shaped"], int)
    assert worst["shaped"] < 0.6 * worst["strict"], worst
