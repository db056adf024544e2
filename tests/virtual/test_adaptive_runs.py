"""Tests in virtual time that a sender adapts to its path, and that every message of it is accounted for."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

SECOND = 10**9
LATE = pl.col("latency_ns").is_null() | (pl.col("latency_ns") > 250_000_000)


def test_a_sender_follows_a_path_that_changes(place: Place, tmp_path: Path) -> None:
    text = (PROJECT / "topologies" / "adaptive.yaml").read_text()
    text = text.replace("hold + 22 s", "hold + 8 s").replace("hold + 42 s", "hold + 16 s")
    file = tmp_path / "adaptive.yaml"
    file.write_text(text)
    run = place.run("-p", "hold=24s", file=str(file))
    manifest = json.loads((run.run_dir / "manifest.json").read_text())
    assert manifest["warnings"] == [], "records that fit each other and the plan"

    begin = manifest["phases"]["hold"][0]
    spans = pl.read_parquet(run.run_dir / "spans.parquet").sort("t_ns")
    used = [(row["what"], row["t_ns"], row["t_ns"] + row["duration_ns"]) for row in spans.to_dicts()]
    assert {what for what, *_ in used} == {"stream", "once", "twice"}

    def at(seconds: float) -> str:
        return next(what for what, since, over in used if since <= begin + seconds * SECOND < over)

    assert (at(7), at(15), at(23.9)) == ("stream", "twice", "stream")
    asked = pl.read_parquet(run.run_dir / "messages.parquet")
    late = asked.filter(LATE)
    good = late.filter(pl.col("scheduled_ns") < begin + 8 * SECOND)
    assert asked.height > 1100 and good.height == 0
    assert late.height < 0.15 * asked.height, (
        "once in the bad radio would lose a quarter of a third, and more"
    )


@pytest.mark.sweep
def test_it_brings_more_in_time_than_each_fixed_way(place: Place) -> None:
    """Shows that the adaptive sender delivers more messages in time than each fixed way to send, on the
    shipped path with seed 1; docs/kinds/adaptive.md has further paths.
    """
    late = {}
    for use in ("adaptive", "stream", "once", "twice"):
        run = place.run("-p", f"use={use}", file=str(PROJECT / "topologies" / "adaptive.yaml"))
        asked = pl.read_parquet(run.run_dir / "messages.parquet")
        assert asked.height == 3050
        late[use] = asked.filter(LATE).height
    assert late["adaptive"] < 0.8 * min(late[use] for use in ("stream", "once", "twice")), late
