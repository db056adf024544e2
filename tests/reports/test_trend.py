"""Tests trends: figures at several dates, each compared with the first, in the order of time and on
one page.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic import write_run
from synthetic_shape import Shape
from synthetic_sides import drawn, side

from orchestrator.cli.errors import DONE, REFUSED
from orchestrator.cli.main import vnet
from reports.compare.comparison import DIFFERS
from reports.compare.errors import CompareError
from reports.compare.side import Side
from reports.compare.trend import MOST, Trend, answer, as_data, drawing, trend, write

DAY = 86_400.0


def night(place: int, factor: float = 1.0) -> Side:
    rng = np.random.default_rng(place)
    one = side("", [drawn(rng, seed, factor) for seed in range(100 * place, 100 * place + 12)])
    return replace(one, name=f"night-{place}")


def over(sides: list[Side]) -> Trend:
    return trend(sides, dated=lambda one: DAY * int(one.name.removeprefix("night-")))


def test_a_change_of_one_night_stands_at_its_date_and_first_on_the_page(tmp_path: Path) -> None:
    found = over([night(3, 1.5), night(1), night(2)])  # the order of the arguments does not matter
    assert found.dates == ("1970-01-02 00:00", "1970-01-03 00:00", "1970-01-04 00:00")
    assert [one.name for one in found.comparison.sides] == ["night-1", "night-2", "night-3"]
    changed = [line for line in found.lines if any(p.finding == DIFFERS for p in line.points)]
    assert [line.what for line in changed] == [found.lines[0].what]
    assert "control" in changed[0].what
    assert [p.finding == DIFFERS for p in changed[0].points] == [False, False, True]
    assert "% slower" in changed[0].last.text
    assert answer(found).startswith("1970-01-04 00:00 against 1970-01-02 00:00: 1 of ")
    assert drawing(changed[0]).count("<circle") == 1
    page = write(found, tmp_path / "trend.html").read_text()
    assert page.index("night-1") < page.index("night-3")
    assert "●" in page
    data = as_data(found)
    assert data["figures"][0]["findings"] == [None, *(p.finding for p in changed[0].points[1:])]
    write(found, tmp_path / "trend.html")  # an existing page of this name is replaced
    (tmp_path / "notes.html").write_text("mine")
    with pytest.raises(CompareError, match="no page of a trend; name another --out"):
        write(found, tmp_path / "notes.html")


def test_equal_nights_raise_no_alarm() -> None:
    found = over([night(place) for place in range(1, 9)])
    assert not [line.what for line in found.lines if any(p.finding == DIFFERS for p in line.points)]
    assert " 0 of " in answer(found)


def test_of_many_nights_the_first_and_the_latest_stay() -> None:
    found = over([night(place) for place in range(1, MOST + 4)])
    assert (len(found.dates), found.left_out) == (MOST, 3)
    assert [found.comparison.sides[place].name for place in (0, 1, -1)] == [
        "night-1", "night-5", f"night-{MOST + 3}",
    ]  # fmt: skip


def test_one_date_and_baselines_are_refused() -> None:
    with pytest.raises(CompareError, match="one date is no trend"):
        over([night(1)])
    with pytest.raises(CompareError, match="night-1: is a baseline and has no date"):
        trend([night(1), night(2)])


def test_the_command_orders_runs_by_when_they_were_made(tmp_path: Path) -> None:
    for name, seed, day in (("new", 1, 3), ("old", 2, 1)):
        run = write_run(tmp_path / name, Shape(seed=seed, hold_s=30, ramp_s=2, clients=2, reference=False))
        os.utime(run / "plan.json", (day * DAY, day * DAY))
    page = tmp_path / "page.html"
    words = ["trend", str(tmp_path / "new"), str(tmp_path / "old"), "--out", str(page), "--json"]
    done = CliRunner().invoke(vnet, words, standalone_mode=False)
    assert done.exception is None, done.output
    assert done.return_value == DONE
    told = json.loads(done.stdout)
    assert [one["date"] for one in told["dates"]] == ["1970-01-02 00:00", "1970-01-04 00:00"]
    assert page.exists()
    refused = CliRunner().invoke(vnet, ["trend", str(tmp_path / "old"), str(tmp_path / "none")])
    assert getattr(refused.exception, "status", refused.exit_code) in (REFUSED, 1)
    assert "is not there" in str(refused.exception) + refused.output
