"""Tests the output of `vnet migrate`, the files that it writes and those that it leaves unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.errors import DONE, REFUSED
from orchestrator.cli.migrate import migrate_command

OLD = """\
name: old
segments: {lan: {subnet: 10.9.0.0/24}}
nodes:
  a: {segment: lan, software: {p: {command: sleep 1, expect: exited}}}  # one
"""
WRONG = OLD.replace("sleep 1", "sleep 1, color: blue")


def call(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(migrate_command, words, standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value), done.output


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "old.yaml"
    file.write_text(OLD)
    file.chmod(0o640)
    return file


def test_check_shows_the_difference_and_changes_nothing(old: Path) -> None:
    status, said = call("--check", str(old))
    assert status == REFUSED and old.read_text() == OLD
    assert "-  a: {segment: lan, software: {p: {command: sleep 1, expect: exited}}}  # one" in said
    assert "+  a: {segment: lan, software: {p: {command: sleep 1, at_end: exited}}}  # one" in said


def test_it_writes_the_same_difference_once(old: Path) -> None:
    shown = call("--check", str(old))[1]
    assert call(str(old)) == (DONE, shown)
    assert old.read_text() == OLD.replace("expect", "at_end") and old.stat().st_mode & 0o777 == 0o640
    assert call("--check", str(old)) == (DONE, "1 file: no retired keys\n")
    assert [path.name for path in old.parent.iterdir()] == ["old.yaml"]


def test_a_file_with_mistakes_stays_and_the_others_are_rewritten(old: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(WRONG)
    status, said = call(str(wrong), str(old))
    assert status == REFUSED and wrong.read_text() == WRONG and "at_end" in old.read_text()
    assert f"{wrong}:4: nodes.a.software.p.color: " in said and f"{wrong}: stays as it is" in said
    assert "1 of 2 files stay as they are" in said


def test_a_link_stays_a_link(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(old)
    assert call(str(link))[0] == DONE
    assert link.is_symlink() and "at_end" in old.read_text()
