"""Tests that each reading of a sentence can be run as it stands, or says what is missing."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/examples"))

import reading_results  # noqa: E402
import readings  # noqa: E402
import rejudged  # noqa: E402
import reproductions  # noqa: E402
from works import WORKS  # noqa: E402

from reports.claims.verdict import FAILS, Judgement  # noqa: E402
from reports.papers import PAPERS  # noqa: E402

LISTED = readings.listed()
RUN = [reading for reading in LISTED if reading.command]


def files(topology: Path) -> list[Path]:
    """Returns the topologies of a campaign; the file itself if it names none."""
    campaign = YAML(typ="safe").load(topology.read_text(encoding="utf-8")).get("campaign", {})
    return [topology.parent / name for name in campaign.get("topologies", [topology.name])]


@pytest.mark.parametrize("reading", RUN, ids=lambda reading: reading.name)
def test_its_parameters_are_of_its_files(reading: readings.Reading) -> None:
    words = shlex.split(reading.command)
    set_to = [words[place + 1] for place, word in enumerate(words) if word == "-p"]
    topology = next(ROOT / word for word in words if word.endswith(".yaml"))
    for file in files(topology):
        known = YAML(typ="safe").load(file.read_text(encoding="utf-8"))["parameters"]
        for name, value in (one.split("=") for one in set_to):
            assert name in known and value in known[name].get("choices", [value])
            assert str(known[name]["default"]) != value  # otherwise it is the adopted reading


def test_each_is_of_a_study_and_states_its_hours() -> None:
    studies = {study.paper for studies in WORKS.values() for study in studies}
    assert {reading.study for reading in LISTED} <= studies
    assert all((reading.hours or 0) > 0 for reading in RUN)


def test_what_a_reading_gave_is_on_the_page_beside_the_adopted_one() -> None:
    given = {one.name: gave for one in LISTED if (gave := reading_results.read(one.name)) is not None}
    assert {file.stem for file in reading_results.PLACE.glob("*.json")} == given.keys() != set()
    page = reproductions.PAGE.read_text(encoding="utf-8")
    for name, gave in given.items():
        reading = next(one for one in LISTED if one.name == name)
        assert gave.command == f"vnet {reading.command}", "of another command; run it anew"
        assert f"What {name} gives ({gave.words}):" in page
        known = {claim.key: claim for claim in PAPERS[reading.study].claims().claims}
        judged = [one for key in gave.claims if (one := gave.of(known[key])) is not None]
        assert judged and not any(rejudged.unmeasured(one) for one in judged)


def test_a_verdict_by_an_earlier_rule_does_not_count() -> None:
    claim = PAPERS["ccc_2011"].claims().claims[0]
    given = {claim.key: reading_results.Given(claim.rule_hash, "fails", "40 %")}
    result = reading_results.Result("c", "abc", 1, 0, (1,), 1.0, ("", "late"), given)
    assert result.of(claim) == Judgement(FAILS, "40 %")
    other = replace(result, claims={claim.key: replace(given[claim.key], rule="other")})
    assert other.of(claim) is None
    assert result.words == "1 runs of seeds 1, made at abc; 1 are suspect: late"


def test_a_campaign_without_a_finished_run_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "cells.jsonl").touch()
    with pytest.raises(SystemExit, match="no run has ended; `make readings` goes on where it was"):
        reading_results.result("ccc_2011", "c", "abc", tmp_path)


def test_a_reading_that_neither_runs_nor_says_why_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (ROOT / "docs/examples/readings.toml").read_text(encoding="utf-8")
    (tmp_path / "readings.toml").write_text(text.replace("\nmissing = ", "\n# missing = "), encoding="utf-8")
    monkeypatch.setattr(readings, "HERE", tmp_path)
    with pytest.raises(SystemExit, match=r"static-arp, .*: write either `command` or what is `missing`"):
        readings.listed()
