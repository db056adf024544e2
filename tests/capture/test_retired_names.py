"""Tests that run directories of earlier versions are read: old names of columns and files become the
present ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from rundirs import whole

import vnet
from capture import disturbance, rawfile
from contract import codec, retired, rundir
from contract.plan import Delivery, Guarantee, Plan
from orchestrator.cli.headlines import verdicts
from reports import judged
from reports.judged import summary
from reports.metrics.metric import Metric, Of, flat, read
from reports.roles import guarantees
from reports.rundir import read_run
from reports.shelf import Shelf

OLD = {
    "link": "wan",
    "direction": "forward",
    "quantity": "delay",
    "asked": 2e7,
    "expected": 2e7,
    "realised": 2e7,
}
OLD |= {"low": 1.9e7, "high": 2.1e7, "unit": "ns", "n": 100, "verdict": "holds", "slack": 2e5}
FLOW = {"deliveries": [{"receivers": "all", "guarantee": {"name": "QoS 1", "rule": "none is lost"}}]}
PRESENT = {"requested": 2e7, "measured": 2e7, "tolerance": 2e5}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    plan = json.dumps(whole(Plan, {"lab": "old", "flows": [FLOW]}))
    (tmp_path / "plan.json").write_text(plan.replace('"guarantee":', '"promise":'))
    (tmp_path / "manifest.json").write_text(json.dumps({"state": "complete", "suspect": False}))
    (tmp_path / "proof.json").write_text(json.dumps([OLD]))
    proven = {"of": "proof", "name": "wan forward delay", "verdict": "holds"}
    delivered = {"of": "promise", "name": "meter: QoS 1", "verdict": "cannot tell"}
    counts = {"proof": {"holds": 1}, "promise": {"cannot tell": 1}}
    verdict = {"format": rundir.VERDICTS_FORMAT, "counts": counts, "verdicts": [proven, delivered]}
    (tmp_path / "verdicts.json").write_text(json.dumps(verdict))
    pl.DataFrame({"t_ns": [1], "asked_bps": [7.0], "bps": [6.0]}).write_parquet(tmp_path / "links.parquet")
    pl.DataFrame({"seq": [1], "promise": ["QoS 1"]}).write_parquet(tmp_path / "messages.parquet")
    figure = flat(Metric("guarantee_held", Of(guarantee="QoS 1"), 1.0, "", 1, None, None, "counted"))
    figure |= {"name": "promise_held", "promise": figure.pop("guarantee")}
    (tmp_path / "summary.json").write_text(json.dumps([figure]))
    pl.DataFrame({"t_ns": [1], "halted": [1]}).write_parquet(tmp_path / "strain.parquet")
    return tmp_path


def test_reports_see_the_present_names(old: Path) -> None:
    (one,) = read_run(old).proof
    assert PRESENT.items() <= asdict(one).items()
    assert Shelf().table(old / "links.parquet").columns == ["t_ns", "requested_bps", "bps"]
    assert "delay: 1 holds; tolerance 200 us" in str(verdicts(summary(old)))


def test_the_python_api_sees_the_present_names(old: Path) -> None:
    run = vnet.load(old)
    assert isinstance(run, vnet.Run)
    assert run.proof.select(*PRESENT).to_dicts() == [PRESENT]
    assert run.tables == ["disturbance", "links", "messages"]
    assert run.links.columns == ["t_ns", "requested_bps", "bps"]
    assert run.table("disturbance").collect().columns == ["t_ns", "stopped"]


def test_a_promise_of_an_old_run_is_a_delivery_guarantee(old: Path) -> None:
    run, loaded = read_run(old), vnet.load(old)
    assert isinstance(loaded, vnet.Run)
    assert guarantees(run) == ["QoS 1"]
    assert loaded.plan.flows == run.plan.flows
    assert Shelf().table(old / "messages.parquet").columns == ["seq", "guarantee"]
    assert loaded.messages.collect_schema().names() == ["seq", "guarantee"]
    assert judged.known(old) == {"proof": {"holds": 1}, "guarantee": {"cannot tell": 1}}
    assert judged.untold(judged.known(old)) == 1
    assert [one.name for one in judged.of(old, "guarantee") or ()] == ["meter: QoS 1"]
    assert loaded.verdicts["of"].to_list() == ["proof", "guarantee"]
    assert loaded.summary["guarantee"].to_list() == ["QoS 1"]
    assert loaded.summary["name"].to_list() == ["guarantee_held"]
    (one,) = read(old) or ()
    assert (one.name, one.of) == ("guarantee_held", Of(guarantee="QoS 1"))


def test_the_plan_of_an_old_run_is_built() -> None:
    owed = {"receivers": "all", "guarantee": {"name": "QoS 1", "rule": "none is lost"}}
    assert codec.build(Delivery, owed) == Delivery("all", Guarantee("QoS 1", "none is lost"))


def test_old_raw_files_are_reduced(old: Path) -> None:
    header = ",".join(disturbance.COLUMNS).replace("stopped", "halted")
    line = ",".join("1" for _ in disturbance.COLUMNS)
    (old / "raw" / "strain.csv").write_text(f"{header}\n{line}\n")
    file = retired.there(old / "raw" / "disturbance.csv")
    assert file == old / "raw" / "strain.csv"
    raw = rawfile.table(file, disturbance.COLUMNS, retired.NAMES["disturbance"])
    assert raw.warnings == () and raw.lines["stopped"].to_list() == [1]


def test_a_file_that_is_not_there_under_either_name(tmp_path: Path) -> None:
    assert (
        retired.there(tmp_path / "disturbance.csv") is None
        and retired.there(tmp_path / "links.parquet") is None
    )
