"""Tests the readers of single files made by other users: links, pipes, endless files and deeply nested ones
are refused.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic import write_run
from synthetic_shape import Shape

from capture.errors import CaptureError
from capture.packets import packets
from contract import regular, rundir
from contract.cells import read_cells
from orchestrator.campaign import held, journal
from orchestrator.cli.errors import CliError
from orchestrator.cli.page import campaigns, runs
from orchestrator.cli.reduce import reduce_command
from reports.compare import baseline
from reports.crate import pack
from reports.errors import RunDirectoryError
from reports.report import report
from reports.study import study_of_campaign


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run", Shape())


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def secret(path: Path) -> None:
    (path.parent.parent / "secret").write_text("{}")
    path.symlink_to(path.parent.parent / "secret")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse, so that it needs no disk space


HOSTILE = pytest.mark.parametrize("made", [pipe, endless, secret, huge])


@HOSTILE
def test_a_file_is_refused_at_once(tmp_path: Path, made: Callable[[Path], None]) -> None:
    path = tmp_path / "d" / "file.json"
    path.parent.mkdir()
    made(path)
    with pytest.raises(OSError, match=r"file\.json"):
        regular.read_json(path)


def test_deep_json_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        regular.read_json(tmp_path / "deep.json")


@pytest.mark.parametrize("made", [pipe, endless, secret])
@pytest.mark.parametrize("name", ["plan.json", "seal.json", "raw/other"])
def test_packets_look_at_the_whole_run_first(
    finished: Path, tmp_path: Path, name: str, made: Callable[[Path], None]
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).unlink(missing_ok=True)
    made(run / name)
    with pytest.raises(CaptureError, match="regular files and directories only"):
        packets(run, "server")


@pytest.mark.parametrize("kind", ["nodes", "captures"])
def test_a_name_that_leads_out_of_the_run_is_damage(finished: Path, tmp_path: Path, kind: str) -> None:
    plan = rundir.read_plan(finished)
    one = dataclasses.replace(getattr(plan, kind)[0], name="../../etc/passwd")
    rundir.write_plan(tmp_path / "run", dataclasses.replace(plan, **{kind: (one,)}))
    with pytest.raises(rundir.UnreadableError, match="is no part of a file name"):
        rundir.read_plan(tmp_path / "run")


@HOSTILE
@pytest.mark.parametrize("name", ["cells.jsonl", "running.x.json", "lock", "page.log", "page.json"])
def test_the_live_page_lists_a_hostile_campaign(
    tmp_path: Path, name: str, made: Callable[[Path], None]
) -> None:
    place = tmp_path / "results" / "camp"
    place.mkdir(parents=True)
    (place / "campaign.json").write_text('{"name": "camp", "cells": []}')
    made(place / name)
    assert [one["path"] for one in runs.runs(tmp_path / "results")["campaigns"]] == ["camp"]
    campaigns.how_it_runs(place)
    if name != "lock":
        assert not campaigns.locked(place)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, '{"a":' + "9" * 5000 + "}", "null", "\0"])
@pytest.mark.parametrize("name", ["manifest.json", "campaign.json"])
def test_the_live_page_lists_what_it_cannot_read(tmp_path: Path, name: str, text: str) -> None:
    place = tmp_path / "one"
    place.mkdir()
    (place / name).write_text(text)
    found = runs.runs(tmp_path)
    assert [one["path"] for one in found["runs"] + found["campaigns"]] == ["one"]


@pytest.mark.parametrize("made", [pipe, endless])
def test_a_campaign_does_not_wait_for_its_lock(tmp_path: Path, made: Callable[[Path], None]) -> None:
    made(tmp_path / "lock")
    with pytest.raises(OSError, match="lock"), journal.locked(tmp_path):
        pass
    assert not held._is_locked(tmp_path)


def test_a_lock_through_a_link_leaves_its_target(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    place = tmp_path / "camp"
    place.mkdir()
    (place / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="lock"), journal.locked(place):
        pass
    assert victim.read_text() == "precious"


def test_lines_that_are_nested_too_deeply_are_no_cells(tmp_path: Path) -> None:
    (tmp_path / "cells.jsonl").write_text("[" * 200_000 + '\n{"cell": "a"}\n')
    assert [line for _, _, line in read_cells(tmp_path / "cells.jsonl")] == [None, {"cell": "a"}]


@pytest.mark.parametrize("name", ["messages.parquet", "pcap/server.pcap", "raw/messages.csv", "plan.json"])
def test_a_hole_in_a_run_is_refused_before_it_is_read(finished: Path, tmp_path: Path, name: str) -> None:
    """Shows that a sparse file of 1 TiB is refused before it is read or hashed, which would take hours."""
    run = shutil.copytree(finished, tmp_path / "run")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).unlink(missing_ok=True)
    huge(run / name)
    with pytest.raises(RunDirectoryError, match=f"{name} is a hole of 1,099,511,627,776 bytes"):
        report(run)


@pytest.mark.parametrize("made", [pipe, endless, huge])
def test_a_capture_that_is_no_file_is_not_reduced(tmp_path: Path, made: Callable[[Path], None]) -> None:
    made(tmp_path / "a.pcap")
    done = CliRunner().invoke(reduce_command, [str(tmp_path / "a.pcap")])
    assert isinstance(done.exception, CliError | SystemExit) and done.exit_code != 0
    assert "is no regular file with packets" in (done.output + str(done.exception))


def test_a_crate_that_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LEAST_BOUND", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.crate.zip", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("raw/zeros", bytes(32 << 20))
    with pytest.raises(pack.CrateError, match="1 files of 33,554,432 bytes, packed into"):
        pack.check(tmp_path / "a.crate.zip")


def test_a_baseline_that_is_nested_too_deeply_is_none(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"a":' * 100_000)
    with pytest.raises(baseline.CompareError, match="is no baseline"):
        baseline._marked(tmp_path / "b.json")


@pytest.mark.parametrize("outside", ["../secret", "/etc", "runs/../../secret", "..", 7, ["runs"], "a\0b"])
def test_a_cell_whose_run_is_elsewhere_is_none(tmp_path: Path, outside: object) -> None:
    """Shows that no command, nor the live page, reads or writes a run outside the campaign's directory that
    the campaign names.
    """
    place = tmp_path / "camp"
    place.mkdir()
    (place / "campaign.json").write_text('{"name": "camp", "cells": [{"cell": "a"}]}')
    line = json.dumps({"cell": "a", "state": "complete", "run_dir": outside})
    (place / "cells.jsonl").write_text(line + "\n")
    (place / "running.b.json").write_text(json.dumps({"cell": "b", "run_dir": outside}))
    assert [cell for _, _, cell in read_cells(place / "cells.jsonl")] == [None]
    assert runs.cells_of(place) == []
    assert study_of_campaign(place).cells == ()
