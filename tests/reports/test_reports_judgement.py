"""Tests that a run's page, its place in a campaign's page and its exit status agree."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from synthetic import write_run
from synthetic_shape import Shape

from capture import trust
from contract import manifest, rundir, seal
from orchestrator.cli.errors import DONE, FAILED, INTERRUPTED, SUSPECT
from orchestrator.cli.run import status_of
from orchestrator.run.located import Places
from orchestrator.run.run import outcome
from reports.sections.section import Page
from reports.sections.trust import section
from reports.study import study_of_run, study_of_runs

QUEUE = {"code": "queue-drops", "text": "its queue dropped", "remedy": "longer", "suspect": True}
NOTE = {"code": "teardown", "text": "came late", "remedy": "wait", "suspect": False}
LOSSY = {"lan": {"packets": 9, "dropped_kernel": 3, "dropped_interface": 1}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("judgement") / "run", Shape(clients=5, ramp_s=5, hold_s=15))


@pytest.mark.parametrize(
    ("known", "strict", "suspect"),
    [
        ({}, DONE, False),
        ({"warnings": [NOTE]}, DONE, False),
        ({"warnings": [NOTE, QUEUE]}, SUSPECT, True),
        ({"captures": LOSSY}, SUSPECT, True),
        ({"state": "failed", "error": "out of memory"}, FAILED, True),
        ({"state": "interrupted", "error": "asked to stop"}, INTERRUPTED, True),
    ],
)
def test_page_and_exit_status_never_differ(
    whole: Path, tmp_path: Path, known: dict[str, Any], strict: int, suspect: bool
) -> None:
    run = shutil.copytree(whole, tmp_path / "run", ignore=shutil.ignore_patterns(manifest.NAME))
    manifest.write(run, manifest.read(whole) | {"error": None} | known)
    manifest.reduced(run, trust.judge(run, rundir.read_plan(run), manifest.load(run)))
    seal.seal(run)
    ended = outcome(run, manifest.load(run), None, cast(Places, SimpleNamespace(text=str)))
    assert (status_of(ended, strict=True), ended.suspect) == (strict, suspect)
    for study in (study_of_run(run), study_of_runs("one", tmp_path, [run])):
        assert ("<strong>Suspect.</strong>" in section(Page(study, tmp_path)).body) is suspect
