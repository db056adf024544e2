"""Tests that a cell which fails in any way leaves no lab, and does not end its campaign."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.campaign import cells
from orchestrator.language.problem import Problem, TopologyError
from orchestrator.run import run


def test_a_damaged_manifest_does_not_keep_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_down: list[bool] = []
    thread = SimpleNamespace(join=lambda: None)
    for name, made in (
        ("_launch", None), ("record_bounds", None), ("_drawing", thread), ("follow", SimpleNamespace())
    ):  # fmt: skip
        monkeypatch.setattr(run, name, lambda *_, made=made, **__: made)
    monkeypatch.setattr(run, "tear_down", lambda *_, ended: taken_down.append(ended))
    (tmp_path / "manifest.json").write_text('{"state": "comp')
    prepared: Any = SimpleNamespace(
        plan=None, time="real", kernel=SimpleNamespace(start=print), state_dir=tmp_path
    )
    with pytest.raises(ValueError):
        run.execute(prepared, tmp_path, lambda event: None)
    assert taken_down == [False]


@pytest.mark.parametrize(
    "failure",
    [
        ValueError("manifest.json: cut"),
        OSError("no space"),
        TopologyError([Problem("f", 1, "", "", "r", "m")]),
    ],
)
def test_each_failure_is_that_of_its_cell(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise failure

    monkeypatch.setattr(cells, "execute", fails)
    prepared: Any = SimpleNamespace(plan=None, why="")
    request: Any = SimpleNamespace(time="real")
    assert cells._executed(prepared, request, Path("run"), lambda event: None) == ("failed", str(failure))
