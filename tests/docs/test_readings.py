"""Tests that each reading of a sentence can be run as it stands, or says what is missing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/examples"))

import readings  # noqa: E402
from works import WORKS  # noqa: E402

LISTED = readings.listed()
RUN = [reading for reading in LISTED if reading.command]


def files(topology: Path) -> list[Path]:
    """The topologies of a campaign; the file itself if it names none."""
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
            assert str(known[name]["default"]) != value  # else it is the reading that was adopted


def test_each_is_of_a_study_and_states_its_hours() -> None:
    studies = {study.paper for studies in WORKS.values() for study in studies}
    assert {reading.study for reading in LISTED} <= studies
    assert all((reading.hours or 0) > 0 for reading in RUN)


def test_a_reading_that_neither_runs_nor_says_why_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (ROOT / "docs/examples/readings.toml").read_text(encoding="utf-8")
    (tmp_path / "readings.toml").write_text(text.replace("\nmissing = ", "\n# missing = "), encoding="utf-8")
    monkeypatch.setattr(readings, "HERE", tmp_path)
    with pytest.raises(SystemExit, match=r"static-arp, .*: write either `command` or what is `missing`"):
        readings.listed()
