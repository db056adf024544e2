"""Tests the readers of manifest, events and link proof."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import pytest

from contract import events, manifest
from contract.manifest import KINDS, Manifest
from contract.proof import Proven


def test_each_field_has_its_value() -> None:
    found = Manifest.of(
        {"state": "complete", "seed": 3, "phases": {"hold": [1, 2]}, "kernel": {"kind": "uml"}}
    )
    assert (found.state, found.seed, found.phases) == ("complete", 3, {"hold": [1, 2]})
    assert found.kernel.get("kind") == "uml" and not found.virtual


@pytest.mark.parametrize("found", [None, [], "text", {}, {"state": 3, "phases": None, "unknown": 1}])
def test_what_is_absent_or_of_another_kind_is_empty(found: object) -> None:
    assert Manifest.of(found) == Manifest()


def test_every_kind_is_known() -> None:
    assert {one.type.partition("[")[0].split()[0] for one in fields(Manifest)} <= KINDS.keys()


def test_events_of_a_run_are_read_without_what_a_crash_cut_off(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    assert events.read(tmp_path) == []
    applied = events.Applied(5, 4, "hold", "link-down", ["wan"], label="cut")
    applied.write(tmp_path)
    with (tmp_path / events.NAME).open("a") as file:
        file.write('[1]\n{"t_ns": 7}\n{"t_ns": 9, "planned_ns": 8, "pha')
    assert events.read(tmp_path) == [applied]


def test_a_manifest_that_is_to_be_there_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        manifest.written(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ValueError, match="no object"):
        manifest.written(tmp_path)


def test_a_line_of_the_proof_is_read_whatever_stands_in_it() -> None:
    line = Proven(
        "wan", "forward", "delay", 2e7, 2e7, 2e7, 1.9e7, 2.1e7, "ns", 9, "holds", "", 1e5, 0.0, 40, 2
    )
    assert Proven.of(asdict(line)) == line
    odd = Proven.of({"link": None, "measured": "x", "verdict": "not judged"})
    assert (odd.link, odd.measured, odd.requested, odd.verdict, odd.directions) == (
        "",
        None,
        0,
        "cannot tell",
        0,
    )
    broken = Proven.of({"verdict": ["holds"], "n": float("nan"), "needs": "many", "directions": 1e400})
    assert (broken.verdict, broken.n, broken.needs, broken.directions) == ("cannot tell", 0, None, 0)
