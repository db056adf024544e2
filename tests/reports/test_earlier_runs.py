"""Tests that runs which earlier versions made give a report, with their old verdicts translated.

The directories in earlier_runs/ were made by the code of that day, without their pages: `pair` of 2026-11-22
by the fake driver, `slotted` of 2026-11-26 in virtual time, whose rates behind slots were *not judged*.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from test_reports_verdicts import RETIRED

import vnet
from contract import findings
from contract.rundir import VERDICTS
from orchestrator.cli.main import main

RUNS = Path(__file__).parent / "earlier_runs"
NAMES = ("pair-2026-11-22", "slotted-2026-11-26")


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(RUNS / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path)
    return tmp_path / str(request.param)


@pytest.mark.parametrize("how", [(), ("--reduce",)], ids=["tables as they are", "reduced again"])
def test_an_earlier_run_is_reported(run: Path, how: tuple[str, ...], tmp_path: Path) -> None:
    assert main(["report", str(run), *how, "--junit", str(tmp_path / "j.xml")]) == 0
    texts = [run / "report" / "index.html", run / VERDICTS, run / "summary.json", tmp_path / "j.xml"]
    assert not [file.name for file in texts if RETIRED.search(_without_style(file.read_text()))]
    found = json.loads((run / VERDICTS).read_text())["counts"]["proof"]
    assert found == ({"holds": 4, "cannot tell": 2} if "slotted" in run.name else {"holds": 3})


def _without_style(text: str) -> str:
    head, _, rest = text.partition("<style")
    return head + rest.partition("</style>")[2]


def test_an_earlier_run_is_loaded_and_not_suspect(run: Path) -> None:
    loaded = vnet.load(run)
    assert isinstance(loaded, vnet.Run)
    assert "guarantee" in loaded.messages.collect_schema().names()
    assert set(loaded.proof["verdict"]) <= {"holds", "cannot tell"}
    assert not findings.read(run).suspect
