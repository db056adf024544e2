"""Tests the parts of a message's time with crafted time stamps and packets, whose sum is known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from synthetic import plan_of

from contract.manifest import Manifest
from reports.papers.middleware_2017 import stages, tables
from reports.papers.middleware_2017.split import BETWEEN, READ, WIRE, WRITE, pauses, times, warming
from reports.study import Study

US, SECOND = 1000, 10**9
CLIENT, SERVER = "10.0.0.2", "10.0.0.1"


def packets(path: Path, rows: list[tuple[int, str, int]]) -> Path:
    """Writes a capture's table from rows of t_ns, sender's address and payload, with 60 bytes of headers
    each.
    """
    frame = pl.DataFrame(rows, schema=["t_ns", "src", "payload_bytes"], orient="row")
    frame.with_columns(wire_bytes=(pl.col("payload_bytes") + 60).cast(pl.UInt32)).write_parquet(path)
    return path


def study(tmp_path: Path, messages: list[tuple[int, int, int]], spans: list[tuple[Any, ...]]) -> Study:
    """Returns a study of pushes (seq, sent_ns, received_ns); the packets of each pass the wire from 300 us
    after its sending, for 500 us.
    """
    of_pushes = pl.DataFrame(messages, schema=["seq", "sent_ns", "received_ns"], orient="row")
    of_pushes = of_pushes.with_columns(
        pl.lit("push").alias("class"), flow=pl.lit(0, pl.UInt32), outcome=pl.lit("sent"), bytes=pl.lit(1000)
    )
    names = ["endpoint", "what", "flow", "seq", "t_ns", "duration_ns"]
    of_spans = pl.DataFrame(spans, schema=names, orient="row", infer_schema_length=None)
    of_spans = of_spans.with_columns(pl.col("flow").cast(pl.UInt32), pl.col("seq").cast(pl.Int64))
    left = [sent + 300 * US for _, sent, _ in messages]
    sent = [(at + more, CLIENT, 500) for at in left for more in (0, 100 * US)]
    came = [(at + 400 * US, CLIENT, 500) for at, _, _ in sent]
    acks = [(at + 450 * US, SERVER, 0) for at, _, _ in sent]
    nodes = [
        {"name": name, "interfaces": [{"address": address}]}
        for name, address in (("client", CLIENT), ("server", SERVER))
    ]
    run = SimpleNamespace(
        plan=plan_of({"nodes": nodes, "parameters": {"use": "ice", "serialiser": "kryo"}}),
        manifest=Manifest(phases={"hold": [0, 10 * SECOND]}),
        captures={
            "client": packets(tmp_path / "client.parquet", sent + acks),
            "server": packets(tmp_path / "server.parquet", came + acks),
        },
        table={"messages": of_pushes, "spans": of_spans}.get,
    )
    cell = SimpleNamespace(run=run, levels={"use": "ice", "serialiser": "kryo"})
    return Study("crafted", tmp_path, cast(Any, (cell,)), True)


def test_the_parts_are_the_whole(tmp_path: Path) -> None:
    spans = [
        ("client", "write", 0, 0, 0, 200 * US),
        ("server", "read", 0, 0, 0, 50 * US),
        ("client", "write", 0, 1, 0, 220 * US),
        ("server", "read", 0, 1, 0, 70 * US),
    ]
    made = study(tmp_path, [(0, SECOND, SECOND + 1000 * US), (1, 2 * SECOND, 2 * SECOND + 1020 * US)], spans)
    found = dict(times(made).select("part", "us").iter_rows())
    assert found == pytest.approx({WRITE: 210, WIRE: 500, READ: 60, BETWEEN: 240})
    assert times(made)["bytes"].unique().to_list() == [2 * 560 + 2 * 60], (
        "both packets, and what acknowledged them"
    )
    assert [table.rows for table in tables.tables(made) if table.caption == tables.WIRE] == [
        (("ice", "1240"),)
    ]
    drawn = stages.SPECS[0].draw(stages.SPECS[0].data(made), made).to_dict()
    assert drawn["encoding"]["y"]["sort"] == ["ice"]


def test_messages_that_overtake_or_wait_for_each_other_are_not_split(tmp_path: Path) -> None:
    spans = [
        (node, what, 0, seq, 0, US)
        for seq in (0, 1)
        for node, what in (("client", "write"), ("server", "read"))
    ]
    late = [(0, SECOND, 3 * SECOND), (1, 2 * SECOND, 4 * SECOND)]
    assert times(study(tmp_path, late, spans)).is_empty()


def test_pauses_and_the_curve_of_warming_up(tmp_path: Path) -> None:
    spans = [
        ("client-ask", "warm-up", None, None, -5 * SECOND, 80_000 * US),
        ("client-ask", "warm-up", None, None, -4 * SECOND, 400 * US),
        ("client-ask", "garbage-collection", None, None, -1, 10_000 * US),  # collected before the hold
        ("server", "garbage-collection", None, None, SECOND, 20_000 * US),
    ]
    made = study(tmp_path, [(0, SECOND, SECOND + US)], spans)
    assert warming(made).rows() == [("ice", 0.0, 80.0), ("ice", 1.0, pytest.approx(0.4))]
    assert pauses(made).rows() == [("ice", 0.5, 20.0, pytest.approx(0.001))]
