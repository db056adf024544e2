"""Tests that terminal, JUnit, `vnet.load` and exit status agree on changed files and on runs without an
end.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from command_line import TOPOLOGIES, CommandLine

import vnet as api
from contract import findings
from contract.manifest import Manifest
from vnet.labs import Lab, LabError, Spec

PAIR = str(TOPOLOGIES / "pair.yaml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a finished run with figures of the fake kernel."""
    place = tmp_path_factory.mktemp("finished")
    done = CommandLine(place, place / "s")("run", PAIR, "--kernel", "fake", "-p", "hold=1s", "--json")
    return place / str(json.loads(done.stdout)["run_dir"])


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """Copies the finished run, so that a test may change it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def not_suspect(file: Path) -> str:
    """Returns the outcome of the case `not suspect`, or of `complete` if that did not pass."""
    cases = {str(c.get("name")): c for c in ElementTree.parse(file).getroot().iter("testcase")}
    case = cases.get("not suspect", cases["complete"])
    return next((e.tag for e in case if e.tag != "system-out"), "passed")


def quicken(run: Path) -> None:
    """Divides every latency by four, as a forger of better figures would."""
    file = run / "messages.parquet"
    pl.read_parquet(file).with_columns(latency_ns=pl.col("latency_ns") // 4).write_parquet(file)


def test_a_changed_table_is_a_finding_for_every_reader(vnet: CommandLine, run: Path) -> None:
    xml = vnet.cwd / "x.xml"
    clean = vnet("report", str(run), "--strict", "--junit", str(xml))
    assert "suspect" not in clean.stderr and not_suspect(xml) == "passed"
    assert api.load(run).manifest["suspect"] is False
    assert "its seal is intact" in vnet("verify", str(run)).stdout

    quicken(run)
    done = vnet("report", str(run), "--strict", "--junit", str(xml), status=5)
    said = "messages.parquet was changed after it had been written"
    assert f"suspect: {said}" in done.stderr
    assert not_suspect(xml) == "error" and said in xml.read_text()
    assert 'name="suspect" value="True"' in xml.read_text()
    found = api.load(run).manifest
    assert found["suspect"] is True and said in [w["text"] for w in found["warnings"]]
    assert said in (run / "report" / "index.html").read_text()
    assert json.loads(vnet("report", str(run), "--json").stdout)["suspect"] is True
    assert "messages.parquet: was changed" in vnet("verify", str(run), status=1).stderr


def test_whoever_asks_for_trust_is_told_of_a_changed_table(run: Path) -> None:
    quicken(run)
    lab = Lab(Spec(run, scenario=True), "pair", run)
    lab.run_dir = run
    with pytest.raises(LabError, match="was changed after it had been written"):
        lab.assert_trusted()


def killed(run: Path, **owner: Any) -> None:
    """Changes the run to one that was killed with -9: no end is recorded, and it has no seal."""
    known = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(known | {"state": "running", "suspect": False}))
    (run / "seal.json").unlink()
    file = run / "raw" / "owner.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | owner))


def test_who_reports_a_run_whose_lab_is_dead_writes_its_end(vnet: CommandLine, run: Path) -> None:
    xml = vnet.cwd / "x.xml"
    killed(run)
    done = vnet("report", str(run), "--strict", "--junit", str(xml), status=5)
    assert "suspect: the run's state is 'interrupted': its lab was killed" in done.stderr
    found = json.loads((run / "manifest.json").read_text())
    assert (found["state"], found["suspect"]) == ("interrupted", True)
    assert not_suspect(xml) == "error" and api.load(run).manifest["suspect"] is True
    page = (run / "report" / "index.html").read_text()
    assert "Nothing marks the numbers suspect" not in page and "no end is recorded" in page


def test_a_run_of_a_machine_that_cannot_be_asked_stays_running_and_is_suspect(
    vnet: CommandLine, run: Path
) -> None:
    xml = vnet.cwd / "x.xml"
    killed(run, host="another-machine")
    done = vnet("report", str(run), "--strict", "--junit", str(xml), status=5)
    assert "suspect: the run's state is 'running'" in done.stderr
    assert json.loads((run / "manifest.json").read_text())["state"] == "running"
    assert not_suspect(xml) == "error" and api.load(run).manifest["suspect"] is True


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"state": "complete", "warnings": []}, None),
        ({"state": "complete", "warnings": None, "suspect": False}, None),
        ({}, "manifest.json is not there"),
        ([], "the run's state is 'unknown'"),
        ({"state": "running", "suspect": False}, "the run's state is 'running'"),
        ({"state": "failed", "error": "no room"}, "the run's state is 'failed': no room"),
        (
            {"state": "complete", "warnings": 3},
            "manifest.json is damaged: its warnings are no list of objects",
        ),
        ({"state": "complete", "warnings": ["x"]}, "manifest.json is damaged: its warnings are no list"),
        ({"state": "complete", "warnings": [], "suspect": True}, "the manifest marks it, without a reason"),
        ({"state": "complete", "warnings": [{"text": "late", "suspect": True}]}, "late"),
    ],
)
def test_a_run_is_suspect_unless_its_whole_manifest_speaks_for_it(found: Any, why: str | None) -> None:
    known = findings.known(found, ())
    told = findings.why(Manifest.of(known))
    assert told is None if why is None else str(told).startswith(why)
    assert bool(known.get("suspect")) is (why is not None) or not known
