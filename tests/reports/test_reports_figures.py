"""Tests that every figure draws as SVG, and that its CSV holds the rows that the chart shows."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from synthetic import write_campaign, write_run
from synthetic_shape import T0, S, Shape

from reports.figures import registry
from reports.figures.comparison import comparison_data
from reports.figures.drawing import draw, save
from reports.figures.marks import event_rows, phase_rows
from reports.figures.spec import Absent, CannotDrawError, Drawn, Spec
from reports.figures.theme import PALETTE, log_ticks
from reports.papers import vnet_2014
from reports.spreadsheet import flat
from reports.study import Study, study_of_campaign, study_of_run
from reports.svg import inline

PAPER = tuple(vnet_2014.EVERY)
EVERY = (*PAPER, *registry.LEVELS, *registry.OVER_TIME, *registry.PROOF)
NEEDS_SEVERAL = {"table-ii", "comparison"}
OTHER_SCENARIO = {"figure-12", "figure-13"}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return study_of_run(write_run(tmp_path_factory.mktemp("one") / "run", Shape()))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Study:
    shapes = [Shape(scenario=s, qos=q, seed=r, hold_s=30) for s in (1, 2) for q in (0, 1, 2) for r in (1, 2)]
    return study_of_campaign(write_campaign(tmp_path_factory.mktemp("set") / "campaign", shapes))


def datasets(vega_lite: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return list(vega_lite["datasets"].values())


def rows_of(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if v is not None} for row in frame.to_dicts()]


@pytest.mark.parametrize("spec", EVERY, ids=lambda s: s.key)
def test_figure_of_one_run(spec: Spec, one: Study, tmp_path: Path) -> None:
    drawn = draw(spec, one)
    if spec.key in NEEDS_SEVERAL | OTHER_SCENARIO:
        assert isinstance(drawn, Absent) and drawn.reason
    else:
        check_files(drawn, tmp_path)


@pytest.mark.parametrize("spec", (*PAPER, *registry.LEVELS, *registry.PROOF), ids=lambda s: s.key)
def test_figure_of_a_campaign(spec: Spec, several: Study, tmp_path: Path) -> None:
    check_files(draw(spec, several), tmp_path)


def check_files(drawn: Drawn | Absent, folder: Path) -> None:
    assert isinstance(drawn, Drawn), drawn
    save(drawn, folder)
    key = drawn.spec.key
    ElementTree.parse(folder / "figures" / f"{key}.svg")
    assert not (folder / "figures" / f"{key}.png").exists()  # PNG files were two thirds of a report's size
    assert json.loads((folder / "figures" / f"{key}.vl.json").read_text())["description"]
    check_csv(drawn, (folder / "tables" / f"{key}.csv").read_text())


def check_csv(drawn: Drawn, text: str) -> None:
    """Checks that file, frame and chart hold the same rows; a chart of panels holds one data set for each
    panel.
    """
    read = pl.read_csv(io.StringIO(text), schema=flat(drawn.frame).schema)
    assert read.equals(flat(drawn.frame))
    shown = datasets(drawn.vega_lite)
    whole = rows_of(drawn.frame)
    in_chart = [[{k: v for k, v in row.items() if v is not None} for row in rows] for rows in shown]
    panels = [row for rows in in_chart if rows and rows[0].keys() >= {"what"} for row in rows]
    assert whole in in_chart or key_sorted(panels) == key_sorted(whole)


def key_sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_long_names_of_links_are_not_clipped(one: Study) -> None:
    name = "from-the-north-western-substation-to-the-control-centre"
    longer = [replace(proven, link=name) for proven in one.cells[0].run.proof]
    run = replace(one.cells[0].run, read_proof=lambda: longer)
    drawn = draw(registry.PROOF[0], replace(one, cells=(replace(one.cells[0], run=run),)))
    assert isinstance(drawn, Drawn) and f"{name} forward<" in drawn.svg


def test_levels_are_told_apart_by_colour_and_shape(several: Study) -> None:
    drawn = draw(PAPER[0], several)
    assert isinstance(drawn, Drawn)
    text = json.dumps(drawn.vega_lite)
    for level, colour in zip(("QoS 0", "QoS 1", "QoS 2"), PALETTE, strict=False):
        assert level in text and colour in drawn.svg
    assert "connected clients" in drawn.svg and "% of a core" in drawn.svg


def test_repetitions_are_one_curve_with_an_interval(several: Study) -> None:
    frame = PAPER[0].data(several)
    held = frame.filter(pl.col("part") == "hold")
    assert held.height == 3 and held["repetitions"].to_list() == [2, 2, 2]
    assert (held["low"] < held["value"]).all() and (held["value"] < held["high"]).all()


@pytest.mark.parametrize("spec", registry.OVER_TIME, ids=lambda s: s.key)
def test_phases_and_events_are_marked_on_every_plot_over_time(spec: Spec, one: Study) -> None:
    drawn = draw(spec, one)
    assert isinstance(drawn, Drawn)
    for word in ("ramp", "hold", "drain", "link uplink down", "link uplink up"):
        assert word in drawn.svg


def test_marks_are_in_seconds_since_the_start(one: Study) -> None:
    run = one.cells[0].run
    assert phase_rows(run).rows() == [(0.0, 30.0, "ramp"), (30.0, 90.0, "hold"), (90.0, 95.0, "drain")]
    assert event_rows(run)["time"].to_list() == [50.0, 60.0]
    assert run.manifest.t0_ns == T0 and run.plan.ramp_ns == 30 * S


def test_published_value_stands_in_figure_15(several: Study) -> None:
    frame = PAPER[7].data(several)
    published = frame.filter(pl.col("published").is_not_null())
    assert published.select("scenario", "series", "measure", "published").rows() == [
        ("scenario 1", "QoS 1", "packets", 30.0)
    ]


def test_logarithmic_ticks() -> None:
    scale, axis = log_ticks(pl.DataFrame({"x": [0.0, 3.0, 40.0]}), "x")
    assert axis.to_dict()["values"] == [5.0, 10.0, 20.0]
    _, wide = log_ticks(pl.DataFrame({"x": [0.01, 1000.0]}), "x")
    assert wide.to_dict()["values"] == [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    assert scale.to_dict()["type"] == "log"


def test_inline_svg_has_own_ids_and_no_fixed_size(one: Study) -> None:
    drawn = draw(PAPER[0], one)
    assert isinstance(drawn, Drawn)
    text = inline(drawn.svg, "figure-8", 'the "title"')
    assert 'aria-label="the &quot;title&quot;"' in text and "viewBox" in text
    assert 'fill="white"' not in text.split("<g", 1)[0]
    ElementTree.fromstring(text)


@pytest.mark.parametrize("values", [(16.06, 16.3), (5.0, 5.0), (7.0, 20.0), (0.001, 900.0)])
def test_a_logarithmic_axis_has_ticks_however_narrow_it_is(values: tuple[float, float]) -> None:
    scale, axis = log_ticks(pl.DataFrame({"ms": values}), "ms")
    low, high = scale.to_dict()["domain"]
    ticks = axis.to_dict()["values"]
    assert 3 <= len(ticks) <= 20 and all(low <= tick <= high for tick in ticks)


def test_too_many_levels_are_not_told_apart() -> None:
    study = SimpleNamespace(series=[f"level {number}" for number in range(41)])
    with pytest.raises(CannotDrawError, match="at most 40 levels; this page has 41"):
        comparison_data(study)  # type: ignore[arg-type]
