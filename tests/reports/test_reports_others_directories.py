"""Tests run directories made by other users: vNET reads and writes no file outside them, and nothing blocks
it.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from synthetic import write_run
from synthetic_shape import Shape

from capture.errors import CaptureError
from capture.reduce import reduce_run
from contract import regular
from orchestrator.verify.verify import VerifyError, recorded
from reports.errors import RunDirectoryError
from reports.report import campaign_report, report
from vnet import load
from vnet.errors import LoadError

WRITTEN = (
    "report/index.html", "summary.json", "verdicts.json", "seal.json", "seal.json.part", "manifest.json.part",
    "messages.parquet", "messages.parquet.part", "report/figures", "report/tables", "report",
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run", Shape())


@pytest.mark.parametrize("name", WRITTEN)
def test_a_link_is_refused_and_its_target_stays(finished: Path, tmp_path: Path, name: str) -> None:
    run, victim = shutil.copytree(finished, tmp_path / "run"), tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    link = run / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True) if not link.is_dir() else shutil.rmtree(link)
    link.symlink_to(victim if "." not in link.name else victim / "file")
    with pytest.raises(RunDirectoryError, match=f"{name} is a symbolic link; "):
        report(run)
    with pytest.raises(CaptureError, match=f"{name} is a symbolic link; "):
        reduce_run(run)
    assert [path.name for path in victim.iterdir()] == ["file"]
    assert (victim / "file").read_text() == "precious"


@pytest.mark.parametrize("name", ["plan.json", "manifest.json", "raw/messages.csv", "messages.parquet"])
def test_a_pipe_is_refused_without_waiting(finished: Path, tmp_path: Path, name: str) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(RunDirectoryError, match=f"{name} is a named pipe; "):
        report(run)


def test_python_and_verify_refuse_it_too(finished: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    (run / "proof.json").unlink()
    (run / "proof.json").symlink_to("/dev/zero")
    with pytest.raises(LoadError, match=r"proof\.json is a symbolic link; "):
        load(run)
    with pytest.raises(VerifyError, match=r"proof\.json is a symbolic link; "):
        recorded(run)


def test_a_campaigns_own_files_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "cells.jsonl").symlink_to("/dev/zero")
    with pytest.raises(RunDirectoryError, match=r"cells\.jsonl is a symbolic link; "):
        campaign_report(tmp_path)


def test_a_link_planted_meanwhile_is_replaced(tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", tmp_path / "file"
    victim.write_text("precious")
    file.symlink_to(victim)
    (tmp_path / "file.part").symlink_to(victim)
    regular.write(file, "new")
    assert victim.read_text() == "precious" and file.read_text() == "new" and not file.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "victim"]


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError), regular.replacing(file) as new:
        new.write(b"half")
        raise ZeroDivisionError
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left"),
        RuntimeError("parquet: IO error: (os error 28)"),
        OSError("No space left on device (os error 28)"),
    ],
)
def test_a_disk_without_room_is_said_of_the_file(tmp_path: Path, error: Exception) -> None:
    """Shows that the error of a write to a full disk names the file, although the system's error, also that
    of a Rust library, names none.
    """
    with pytest.raises(OSError, match="No space left") as raised, regular.replacing(tmp_path / "table"):
        raise error
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(tmp_path / "table"))
    assert not list(tmp_path.iterdir())
