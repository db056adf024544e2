"""Tests a campaign on several machines: an effect of the machines on figures is found if there is one, and
only then.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import run_of, write_campaign
from synthetic_shape import Shape

from reports.cell import Cell
from reports.metrics.hosts import Effect, apart, host_effects
from reports.metrics.metric import Metric, Of, count
from reports.sections import machines
from reports.sections.section import Page
from reports.study import study_of_campaign
from reports.warnings import notices

LATENCY, CPU = Of(traffic_class="alarms"), Of(group="brokers", role="broker")


def cells(machines: str, adds: dict[str, float], spread: float, seed: int = 1) -> list[Cell]:
    """Returns cells of two very different conditions, each repeated once on every machine."""
    rng = np.random.default_rng(seed)

    def metrics(condition: int, machine: str) -> list[Metric]:
        noise = 1 + spread * rng.standard_normal(3)
        mean = (10.0, 80.0)[condition]
        return [
            count("latency_p99", LATENCY, (mean + adds.get(machine, 0.0)) * noise[0], "ms", 1, ""),
            count("cpu", CPU, mean * noise[1], "%", 1, ""),
            count("host_busy", Of(machine="outer"), 5.0 + 10 * ord(machine) * noise[2], "%", 1, ""),
        ]

    return [
        Cell(
            run_of(), metrics(condition, machine), "s", {}, f"level {condition}", repetition, machine=machine
        )
        for condition in (0, 1)
        for repetition, machine in enumerate(machines, 1)
    ]


def by_name(effects: list[Effect]) -> dict[str, Effect]:
    return {effect.name: effect for effect in effects}


def test_what_a_machine_adds_is_found_though_conditions_differ_more() -> None:
    effects = by_name(host_effects(cells("aabbcc", {"b": 9.0}, 0.02)))
    assert effects.keys() == {"latency_p99", "cpu"}
    latency = effects["latency_p99"]
    assert latency.significant and not effects["cpu"].significant
    assert max(latency.adds, key=latency.adds.__getitem__) == "b"
    assert latency.span == pytest.approx(9 / 48, rel=0.15) and sum(latency.adds.values()) == pytest.approx(0)


def test_machines_that_are_alike_seldom_differ() -> None:
    found = [e for seed in range(200) for e in host_effects(cells("aaabbb", {}, 0.05, seed))]
    assert len(found) == 400 and sum(effect.significant for effect in found) <= 6


@pytest.mark.parametrize(("machines", "spread"), [("aabb", 0.0), ("aaaa", 0.1), ("ab", 0.1)])
def test_where_nothing_can_be_said(machines: str, spread: float) -> None:
    """Shows that there is no answer if all runs are equal, if they are on one machine, or if there are too
    few.
    """
    assert not host_effects(cells(machines, {}, spread))


def test_in_virtual_time_machines_add_nothing() -> None:
    placed = cells("aabbcc", {"b": 9.0}, 0.02)
    virtual = [replace(cell, run=run_of(manifest={"time": "virtual"})) for cell in placed]
    assert host_effects(placed) and not host_effects(virtual) and not apart(virtual)


def test_a_machine_that_adds_the_same_to_every_run() -> None:
    (effect,) = (e for e in host_effects(cells("aabb", {"b": 1.0}, 0.0)) if e.name == "latency_p99")
    assert effect.significant and effect.adds["b"] > 0 > effect.adds["a"]


def test_conditions_on_machines_of_their_own_cannot_be_compared() -> None:
    mixed = cells("aabb", {}, 0.1)
    own = [cell for cell in mixed if (cell.series == "level 0") == (cell.machine == "a")]
    assert apart(own) and not host_effects(own)
    assert not apart(mixed) and not apart([cell for cell in mixed if cell.machine == "a"]) and not apart([])


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shapes = [Shape(qos=qos, seed=seed, hold_s=10) for qos in (0, 1) for seed in (1, 2, 3, 4)]
    return write_campaign(tmp_path_factory.mktemp("machines") / "campaign", shapes)


@pytest.mark.parametrize(
    ("names", "factor", "said"),
    [
        ("abab" * 2, 1.5, "depend on the machine of the run: cpu (brokers, broker) is larger on "),
        ("aaaabbbb", 1.0, "no condition ran on two machines"),
        ("a" * 8, 1.5, ""),
    ],
)
def test_the_page_warns_and_shows_them(
    campaign: Path, tmp_path: Path, names: str, factor: float, said: str
) -> None:
    lines = [json.loads(line) for line in (campaign / "cells.jsonl").read_text().splitlines()]
    for number, (line, name) in enumerate(zip(lines, names, strict=True)):
        value = (50.0 + number % 3 / 10) * (factor if name == "b" else 1.0)
        of = dict.fromkeys(Of.__dataclass_fields__) | {"group": "brokers", "role": "broker"}
        row = {"name": "cpu", **of, "value": value, "unit": "%", "n": 1, "low": None, "high": None}
        summary = campaign / line["run_dir"] / "summary.json"
        summary.write_text(json.dumps([row | {"method": "", "limits": []}]))
        line["machine"] = name
    (campaign / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    study = study_of_campaign(campaign)
    found = [notice for notice in notices(study) if "machine" in notice.text]
    assert [said in notice.text for notice in found] == [True] * bool(said)
    part = machines.section(Page(study, tmp_path))
    assert (part is not None) == (names == "abab" * 2)
    if part is not None:
        assert "brokers, broker" in part.body and (tmp_path / "tables" / "machines.csv").exists()
        assert "larger on b than on a, by 40 % of its mean" in found[0].text
