"""Tests that an example is stale where its cell gives other files or figures."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
sys.path.insert(0, str(EXAMPLES))
sys.path.insert(0, str(Path(__file__).parents[1] / "virtual"))

import fresh  # noqa: E402
import publish  # noqa: E402
from virtual_place import kernel_missing  # noqa: E402

needs_kernel = pytest.mark.skipif(kernel_missing() is not None, reason=str(kernel_missing()))

WITHIN = 30.0  # seconds of cells that CI runs again
THERE = sorted(file.parent.name for file in EXAMPLES.glob("*/made.json"))
CELL = fresh.Cell("a.r1", "a.yaml", {"n": 2}, 1, {}, 3.0, {"raw/links.csv": "ab"}, {"cpu": "12"})


def test_other_files_and_figures_differ_and_a_new_metric_does_not() -> None:
    assert CELL.differing({"raw/links.csv": "ab"}, {"cpu": "12", "new": "34"}) == []
    assert CELL.differing({"raw/links.csv": "cd", "pcap/x.pcap": "ef"}, {"cpu": "56"}) == [
        "pcap/x.pcap",
        "raw/links.csv",
        "cpu",
    ]
    assert CELL.differing({}, {}) == ["raw/links.csv", "cpu"]


def test_memory_moves_with_each_build_and_makes_no_example_stale() -> None:
    cell = replace(CELL, files={"raw/nodes.csv": "ab"}, figures={"memory": "12"})
    assert cell.differing({"raw/nodes.csv": "cd"}, {"memory": "34"}) == []


def written(place: Path, name: str, **more: object) -> None:
    (place / name).mkdir()
    (place / name / "made.json").write_text(json.dumps({"commit": "abc", **more}))


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes four examples: one from before cells were recorded, one marked as stale, two with cells of 3 and
    20 s.
    """
    monkeypatch.setattr(fresh, "HERE", tmp_path)
    written(tmp_path, "old")
    written(tmp_path, "marked", stale="it is of before x", cell=asdict(CELL))
    written(tmp_path, "cheap", cell=asdict(CELL))
    written(tmp_path, "dear", cell=asdict(replace(CELL, seconds=20.0)))
    return tmp_path


def test_the_stale_are_named_with_their_commit_and_the_remedy(
    examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    differing = {3.0: [], 20.0: ["raw/links.csv"]}
    monkeypatch.setattr(fresh, "again", lambda cell: fresh.Again(differing[cell.seconds], {"agent": "2"}))
    found = fresh.check(["old", "marked", "cheap", "dear"])
    assert found == [
        "old: stale (made at abc): no cell of it was recorded; make examples EXAMPLES=old",
        "marked: stale (made at abc): it is of before x; make examples EXAMPLES=marked",
        "dear: stale (made at abc): its cell a.r1, run again, gives other raw/links.csv; "
        "make examples EXAMPLES=dear",
    ]
    assert "cheap: fresh: a.r1 gives the same again" in capsys.readouterr().out


def test_where_the_packages_differ_a_difference_proves_nothing(
    examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = fresh.Again(["raw/links.csv"], {"agent": "2", "package bash": "5.3"})
    monkeypatch.setattr(fresh, "again", lambda cell: again)
    assert fresh.check(["cheap"]) == []
    assert "cheap: cannot tell here: package bash is of another version" in capsys.readouterr().out


def test_the_cheapest_run_within_the_given_seconds(examples: Path) -> None:
    names = ["old", "marked", "dear", "cheap"]
    assert [name for name, _ in fresh.chosen(names, None)] == ["cheap", "dear"]
    assert [name for name, _ in fresh.chosen(names, 22)] == ["cheap"]


def test_every_example_names_its_commit_and_those_without_a_cell_are_stale() -> None:
    assert all(fresh.made(name).get("commit") for name in THERE)
    assert all(fresh.known_stale(name) for name in THERE if fresh.cell_of(name) is None)


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses a state directory of this test's own, so that labs of the same name in other tests do not
    conflict.
    """
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "state"))


@needs_kernel
@pytest.mark.usefixtures("own_state")
def test_examples_that_are_not_marked_as_stale_are_fresh() -> None:
    chosen = [name for name, _ in fresh.chosen(THERE, WITHIN)]
    assert fresh.check(chosen) == []


@needs_kernel
@pytest.mark.usefixtures("own_state")
def test_a_cell_that_is_recorded_repeats_and_another_seed_differs(tmp_path: Path) -> None:
    command = publish.Command.read("run topologies/pair.yaml --time virtual --seed 3 -p hold=2s")
    publish.run(command, tmp_path / "run")
    cell = publish.made_of("pair", command, tmp_path / "run")["cell"]
    recorded = fresh.Cell(**json.loads(json.dumps(cell)))
    assert fresh.again(recorded).differing == []
    assert fresh.again(replace(recorded, seed=4)).differing != []
