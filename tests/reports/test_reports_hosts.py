"""Tests the page of a lab over several hosts: each host, its clock, and the underlay between two of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic import write_run
from synthetic_shape import Shape

from reports.headline import headline
from reports.sections.hosts import section
from reports.sections.section import Page
from reports.study import study_of_run

HOSTS = {
    "lab1": {"machine": "ssh://root@10.1.0.1", "kernel": "6.12.1", "cores": 16, "nodes": 3},
    "here": {"machine": "", "kernel": "6.18.44", "nodes": 2},
}
CLOCKS = {"lab1": {"offset_ns": -2_500_000, "error_ns": 120_000, "drift_ppm": 1.25}}
UNDERLAY = [
    {"a": "here", "b": "lab1", "tunnel": "vx-lan", "frame_bytes": 1514, "delay_ns": 10_200_000,
     "jitter_ns": 30_000, "loss": 0.02, "rate_bps": 941_000_000, "rate_back_bps": 0,
     "clock_error_ns": 120_000}
]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = write_run(tmp_path / "run", Shape(clients=5, ramp_s=5, hold_s=15))
    samples = pl.read_parquet(made / "host.parquet")
    busy = {"lab1": 0.25, "here": 0.5}
    rows = [
        samples.with_columns(where=pl.lit(name), busy_share=pl.lit(share)) for name, share in busy.items()
    ]
    pl.concat(rows).write_parquet(made / "host.parquet")
    manifest = json.loads((made / "manifest.json").read_text())
    known: dict[str, Any] = {"hosts": HOSTS, "clocks": CLOCKS, "underlay": UNDERLAY}
    (made / "manifest.json").write_text(json.dumps(manifest | known))
    return made


def cells(body: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.S)
    return [re.findall(r"<t[dh][^>]*>\s*(.*?)\s*</t[dh]>", row, flags=re.S) for row in rows]


def test_hosts_clocks_and_what_lies_between(run: Path) -> None:
    page = Page(study_of_run(run), run / "report")
    part = section(page)
    assert part is not None and part.title == "Hosts"
    rows = cells(str(part.body))
    assert ["lab1", "ssh://root@10.1.0.1", "6.12.1", "16", "3", "-2.5", "0.12", "1.25"] in rows
    assert ["here", "this machine", "6.18.44", "-", "2", "-", "-", "-"] in rows
    assert ["here - lab1", "10.2", "0.03", "2", "941", "0", "1514", "0.12"] in rows
    table = pl.read_csv(run / "report" / "tables" / "underlay.csv")
    assert table.row(0, named=True) == UNDERLAY[0]


def test_each_hosts_load_is_among_the_first_figures(run: Path) -> None:
    shown = {row[0]: row[1] for row in headline(run)}
    assert shown["host here busy, %"].startswith("50") and shown["host lab1 busy, %"].startswith("25")
    assert "machine busy, %" not in shown


def test_a_lab_on_one_machine_has_no_such_section(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", Shape(clients=5, ramp_s=5, hold_s=15))
    assert section(Page(study_of_run(made), made / "report")) is None
