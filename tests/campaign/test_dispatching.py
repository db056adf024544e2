"""Tests that a campaign on an engine ends with its last cell, even if no worker is left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed")
from orchestrator.campaign.engines.dispatch import _Spread, _unpacked
from orchestrator.campaign.engines.task import Result
from orchestrator.campaign.engines.worker import pack


class Sparse(_Spread):
    """Runs cells with one worker, which leaves after `stays` cells; no other worker comes."""

    def __init__(self, stays: int) -> None:
        self._client: Any = SimpleNamespace(subscribe_topic=lambda *_: None)
        self._workers: Any = SimpleNamespace(admitted={"w": None}, wait=lambda *_: None)
        self._sitting, self._flights, self._unfit = "s", {}, []
        self._stopped, self._jobs = False, None
        self._stays, self.ran, self.waited = stays, list[int](), 0

    def _submit(self, number: int, cell: Any) -> None:
        self._flights[number] = cell

    def _hear(self) -> None:
        if not self._flights:
            self.waited += 1
            self._stopped = self.waited == 3  # the campaign is stopped as by Ctrl-C
            return
        number, _ = self._flights.popitem()
        self.ran.append(number)
        if len(self.ran) == self._stays:
            self._workers.admitted = {}


CELLS: Any = [(1, None), (2, None), (3, None)]


def test_a_worker_that_leaves_after_the_last_cell_is_not_waited_for() -> None:
    spread = Sparse(stays=3)
    assert spread.run(CELLS) is False and spread.ran == [1, 2, 3] and spread.waited == 0


def test_cells_that_are_left_wait_for_a_worker() -> None:
    spread = Sparse(stays=2)
    assert spread.run(CELLS) is True and spread.ran == [1, 2] and spread.waited == 3


def test_a_cell_whose_files_come_damaged_fails_and_the_campaign_goes_on(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "manifest.json").write_text("{}" * 5000)
    whole = pack(tmp_path / "there")
    for packed in (b"", b"no archive", whole[: len(whole) // 2], whole[:40] + b"xxxxxxxx" + whole[48:]):
        (here := tmp_path / str(len(packed))).mkdir()
        result = _unpacked(Result("complete", None, 1.0, "far", "b", packed=packed), here)
        assert result.state == "failed" and "its files from far cannot be unpacked" in str(result.error)
    (here := tmp_path / "here").mkdir()
    result = Result("complete", None, 1.0, "far", "b", packed=whole)
    assert _unpacked(result, here) == result and (here / "manifest.json").read_text() == "{}" * 5000
