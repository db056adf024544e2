"""Tests reading the lines of a lab in virtual time, whose kernel writes them to the host in whole pages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.kernel.virtual.guest import LINES, STATUS
from orchestrator.kernel.virtual.owner import VirtualOwner


@pytest.fixture
def owner(tmp_path: Path) -> VirtualOwner:
    (tmp_path / "raw").mkdir()
    boot: Any = SimpleNamespace(run_dir=str(tmp_path))
    return VirtualOwner(boot, SimpleNamespace())  # type: ignore[arg-type]


def test_zeros_are_read_again_when_the_guest_has_filled_them(
    owner: VirtualOwner, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = b'{"event": "phase"}\n{"event": "ready"}\n{"event": "end", "status": 0}\n'
    for known in (25, 40):  # number of bytes that are written; the rest of the page is still zero
        (owner.raw / LINES).write_bytes(whole[:known] + bytes(len(whole) - known))
        owner._pass_on()
    (owner.raw / LINES).write_bytes(whole)
    owner._pass_on()
    assert capsys.readouterr().out == whole.decode() and owner._ended


def test_zeros_that_stay_at_the_end_hide_no_line(
    owner: VirtualOwner, capsys: pytest.CaptureFixture[str]
) -> None:
    (owner.raw / LINES).write_bytes(b'{"event": "phase"}\n\0\0\0\0{"event": "end"}\n\0\0')
    owner._pass_on()
    owner._pass_on(ended=True)
    assert capsys.readouterr().out == '{"event": "phase"}\n{"event": "end"}\n' and owner._ended


@pytest.mark.parametrize(("written", "status"), [(b"5\n", 5), (b"\0\0", None), (b"", None), (None, None)])
def test_a_status_that_was_not_written_whole_is_none(
    owner: VirtualOwner, written: bytes | None, status: int | None
) -> None:
    if written is not None:
        (owner.raw / STATUS).write_bytes(written)
    assert owner._status() == status
