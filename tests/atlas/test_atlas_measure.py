"""Tests the atlas row of one run: expected updates, bytes on the link, retransmissions, and the
model's name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contract.plan import Plan
from reports.atlas.axes import DEADLINES_S
from reports.atlas.dataset import AtlasError, collect, merged
from reports.atlas.measure import model, row_of
from reports.errors import RunDirectoryError

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from whole_plan import whole

S = 10**9
T0 = 1_790_000_000 * S
UTILITY, BROKER, METER = "10.65.0.1", "10.65.0.2", "10.65.0.3"


def node(name: str, address: str, segment: str) -> dict[str, Any]:
    return {"name": name, "interfaces": [{"address": address, "segment": segment}], "software": []}


def frame(t_s: float, src: str | None, dst: str | None, wire_bytes: int, **more: Any) -> dict[str, Any]:
    told = {"retransmission": None, "app": None, "app_types": []} | more
    return {"t_ns": T0 + round(t_s * S), "src": src, "dst": dst, "wire_bytes": wire_bytes, **told}


CENTRE = [
    frame(1, UTILITY, METER, 74),  # sent before the first update, so it counts as setup
    frame(10, UTILITY, BROKER, 500),  # both ends are on this side of the link, so the frame does not cross it
    frame(10, BROKER, METER, 1000),
    frame(11, BROKER, METER, 1000, retransmission=True),
    frame(12, UTILITY, "239.192.0.1", 300, app_types=["RDATA"]),  # a multicast counts once; RDATA is a repair
    frame(12, METER, UTILITY, 60),  # from the other side, whose own capture counts it
    frame(12, None, None, 60),  # no IP packet
]
FIELD = [frame(10.5, METER, BROKER, 66), frame(12, METER, UTILITY, 60), frame(12, BROKER, METER, 1000)]


def message(seq: int, receiver: str | None, latency_s: float | None, trip_s: float | None) -> dict[str, Any]:
    scheduled = T0 + (10 + seq) * S
    return {
        "flow": 0, "seq": seq, "receiver": receiver, "pattern": "request", "scheduled_ns": scheduled,
        "latency_ns": None if latency_s is None else round(latency_s * S), "copies": 2 if latency_s else None,
        "round_trip_ns": None if trip_s is None else round(trip_s * S),
    }  # fmt: skip


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Writes the run directory of two updates to three receivers: six deliveries are expected but only four
    recorded, because one receiver was late.
    """
    path = tmp_path / "runs" / "one"
    (path / "packets").mkdir(parents=True)
    nodes = [node("utility", UTILITY, "centre"), node("broker", BROKER, "centre"), node("m1", METER, "field")]
    plan = whole(Plan, {"nodes": nodes})
    phases = {"ramp_ns": 8 * S, "hold_ns": 20 * S, "drain_ns": 2 * S}
    (path / "plan.json").write_text(json.dumps({**plan, **phases}))
    asked = {"loss": "5 %", "rate": "250 kbit/s", "delay": "50 ms", "receivers": 3, "size": "1 kB",
             "duplex": "half", "qos": 1}  # fmt: skip
    captures = {name: {"packets": 3, "dropped_kernel": 1, "dropped_interface": 0} for name in ("a", "b")}
    told = {
        "parameters": asked, "seed": 4, "t0_ns": T0, "phases": {"ramp": [T0, T0], "drain": [T0, T0 + 30 * S]},
        "suspect": True, "warnings": [{"code": "late"}, {"code": "late"}], "kernel": {"release": "7.3"},
        "versions": {"vnet": "0.1.0"}, "time": "virtual", "inputs": {"code": "c", "agent": "a"},
        "captures": captures,
    }  # fmt: skip
    (path / "manifest.json").write_text(json.dumps(told))
    messages = [message(0, "m1", 0.04, 1.5), message(0, "m2", 3.0, None), message(1, "m1", None, None)]
    pl.DataFrame([*messages, message(1, None, None, None)]).write_parquet(path / "messages.parquet")
    for name, frames in (("at-centre", CENTRE), ("at-field", FIELD)):
        schema = {"app_types": pl.List(pl.String), "retransmission": pl.Boolean, "app": pl.String}
        pl.DataFrame(frames, schema_overrides=schema).write_parquet(path / "packets" / f"{name}.parquet")
    return path


def test_a_run_is_a_row(run_dir: Path) -> None:
    row = row_of(run_dir, {"topology": "atlas-mqtt", "loss": "5 %", "qos": 1}, 7, 2.5)
    assert (row["model"], row["point"], row["seed"], row["wall_s"]) == ("mqtt qos 1", 7, 4, 2.5)
    assert (row["loss"], row["rate_bps"], row["delay_s"], row["size_bytes"]) == (0.05, 250e3, 0.05, 1000)
    assert (row["updates"], row["owed"], row["delivered"], row["confirmed"]) == (2, 6, 2, 1)
    assert row["hit_patience"] and row["duplicated"] == 2
    within = dict(zip(DEADLINES_S, row["delivered_within"], strict=True))
    assert (within[0.05], within[2.0], within[5.0]) == pytest.approx((1 / 6, 1 / 6, 2 / 6))
    assert dict(zip(DEADLINES_S, row["confirmed_within"], strict=True))[2.0] == pytest.approx(1 / 6)
    assert row["lab_s"] == 30 and row["patience_s"] == 19
    assert row["suspect"] and row["warnings"] == ["late"] and row["captures_dropped"] == 2


def test_what_crosses_the_link_is_counted_once_where_it_was_sent(run_dir: Path) -> None:
    row = row_of(run_dir, {"topology": "atlas-mqtt"}, 1, None)
    assert row["wire_bytes"] == 1000 + 1000 + 300 + 66 + 60 and row["wire_packets"] == 5
    assert row["setup_bytes"] == 74 and row["retransmissions"] == 2
    assert row["bytes_per_update"] == pytest.approx(2426 / 6)


def test_a_model_is_its_topology_and_the_factors_beside_the_network() -> None:
    levels = {"topology": "atlas-pub-sub", "loss": "5 %", "duplex": "half", "receivers": 3}
    assert model("atlas-pub-sub", levels, {"loss": "5 %"}) == "pub-sub"
    assert model("atlas-mqtt", {**levels, "qos": 2}, {"qos": 2}) == "mqtt qos 2"


def line(state: str, **more: Any) -> str:
    told = {"cell": f"c-{state}", "state": state, "run_dir": "runs/one", "levels": {"topology": "atlas-mqtt"}}
    return json.dumps(told | {"error": "it broke", "wall_s": 1.0, "point": 3} | more) + "\n"


def test_a_campaign_gives_its_complete_runs_and_says_what_it_leaves_out(run_dir: Path) -> None:
    root = run_dir.parents[1]
    (root / "cells.jsonl").write_text(line("complete") + line("failed") + "torn {")
    rows, skipped = collect(root)
    assert [row["point"] for row in rows] == [3] and merged(None, rows).height == 1
    assert len(skipped) == 2 and any("c-failed: failed: it broke" in sentence for sentence in skipped)


def test_a_campaign_without_points_and_a_run_without_captures_are_no_evidence(run_dir: Path) -> None:
    root = run_dir.parents[1]
    (root / "cells.jsonl").write_text(json.dumps({"cell": "c", "state": "complete", "run_dir": "runs/one"}))
    with pytest.raises(AtlasError, match="cell c belongs to no point; the atlas is made of campaigns"):
        collect(root)
    (run_dir / "packets" / "at-field.parquet").unlink()
    with pytest.raises(RunDirectoryError, match="holds no messages, or no captures at-field and at-centre"):
        row_of(run_dir, {"topology": "atlas-mqtt"}, 1, None)
