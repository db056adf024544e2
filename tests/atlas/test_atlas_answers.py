"""Tests the atlas on a data set whose true values are known: estimates, intervals, ranking, and questions
that it cannot answer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc
from synthetic_atlas import data_set, in_time, place_of, row, rows

from reports.atlas.answer import Question, ask, reach, share_surface, shares_in_time
from reports.atlas.axes import AXES, DEADLINES_S, Place, coordinates, distances
from reports.atlas.contents import contents
from reports.atlas.dataset import Atlas, AtlasError, merged, read, write
from reports.atlas.score import choices, scores
from reports.atlas.surface import Surface

MIDDLE = Place(0.1, 1e6, 0.1, 20, 2000, "full")


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    return read(data_set(tmp_path_factory.mktemp("atlas") / "atlas.parquet"))


def asked(**changes: object) -> Question:
    return replace(Question(MIDDLE, 5.0, 0.99), **changes)  # type: ignore[arg-type]


def test_a_surface_tells_a_smooth_function_between_its_points() -> None:
    points = qmc.Halton(3, rng=1).random(200)
    truth = lambda at: 0.5 + 0.3 * np.sin(2 * at[:, 0]) * at[:, 1] - 0.1 * at[:, 2]  # noqa: E731
    surface = Surface(points, truth(points), 0.0, 1.0)
    elsewhere = qmc.Halton(3, rng=2).random(50) * 0.8 + 0.1
    assert np.abs(surface.at(elsewhere) - truth(elsewhere)).max() < 0.06
    assert surface.errors.mean() < 0.03
    assert 0.8 <= surface.covered() <= 1


def test_an_estimate_stays_within_its_interval_and_its_bounds(atlas: Atlas) -> None:
    some = atlas.of("sure 1")
    known = shares_in_time(some, 0.5)
    assert known is not None
    surface = share_surface(coordinates(some), known)
    for at in qmc.Halton(6, rng=5).random(40):
        found = surface.estimate(at)
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_noise_is_not_believed_to_be_a_surface() -> None:
    noise = np.random.default_rng(1)
    points, values = noise.random((80, 6)), noise.random(80)
    surface = Surface(points, values, 0.0, 1.0)
    # The surface has large errors at its own points, which make the interval wide.
    assert surface.off(np.full(6, 0.5)) > 0.3
    assert surface.errors.mean() > 0.2


def test_points_that_leave_an_axis_out_are_interpolated_without_its_trend(tmp_path: Path) -> None:
    full = [r for r in rows(80) if r["duplex"] == "full"]
    answer = ask(read(data_set(tmp_path / "a.parquet", full)), asked(deadline_s=30.0))
    assert answer.best is not None and answer.best.model == "sure 1"


def test_the_cheaper_model_wins_where_both_meet_the_requirements(atlas: Atlas) -> None:
    lax = ask(atlas, asked(needed=0.3))
    assert [c.model for c in lax.candidates] == ["plain", "sure 1"]
    assert lax.best is not None and lax.best.verdict in ("meets", "likely")
    strict = ask(atlas, asked(deadline_s=30.0))
    assert strict.best is not None and strict.best.model == "sure 1"
    assert strict.candidates[1].verdict == "no"


def test_estimates_are_near_the_truth_and_neighbours_are_measurements(atlas: Atlas) -> None:
    answer = ask(atlas, asked())
    for candidate in answer.candidates:
        assert candidate.in_time is not None
        assert abs(candidate.in_time.value - in_time(candidate.model, MIDDLE, 5.0)) < 0.15
        away = [n.away for n in candidate.neighbours]
        assert len(away) == 3 and away == sorted(away) and away[0] > 0
        for near in candidate.neighbours:
            measured = atlas.of(candidate.model).filter(pl.col("point") == near.point)
            assert measured["loss"].item() == near.place.loss
            assert near.in_time == pytest.approx(in_time(candidate.model, near.place, 5.0), abs=1e-6)


def test_a_budget_rules_out_what_costs_more(atlas: Atlas) -> None:
    free = ask(atlas, asked(deadline_s=30.0))
    assert free.best is not None and free.best.bytes_per_update is not None
    dear = ask(atlas, asked(deadline_s=30.0, budget_bytes=free.best.bytes_per_update.value / 4))
    sure = next(c for c in dear.candidates if c.model == "sure 1")
    assert dear.best is None and sure.verdict == "no" and sure.why == "over the budget"


def test_confirmations_are_unknown_of_a_model_that_has_none(atlas: Atlas) -> None:
    answer = ask(atlas, asked(confirmed=True))
    assert [c.verdict for c in answer.candidates if c.model == "plain"] == ["unknown"]
    assert answer.candidates[-1].model == "plain" and not answer.unknown


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loss": 0.5}, "loss: 50 % is outside what the atlas was designed for, 0 % to 40 %"),
        ({"rate_bps": 1e9}, "rate: 1e+03 Mbit/s is outside"),
        ({"receivers": 301}, "receivers: 301 is outside what the atlas was designed for, 1 to 300"),
        ({"size_bytes": 20}, "size: 20 B is outside"),
        ({"delay_s": 2}, "delay: 2 s is outside"),
    ],
)
def test_outside_of_the_ranges_it_does_not_know(atlas: Atlas, change: dict[str, float], said: str) -> None:
    answer = ask(atlas, asked(place=replace(MIDDLE, **change)))  # type: ignore[arg-type]
    assert answer.candidates == () and answer.best is None
    assert len(answer.unknown) == 1 and answer.unknown[0].startswith(said)


def test_a_deadline_that_was_not_measured_is_not_known(atlas: Atlas) -> None:
    assert ask(atlas, asked(deadline_s=61.0)).unknown[0].startswith("deadline: 61 s is outside")


def test_far_from_every_measurement_it_does_not_know(tmp_path: Path) -> None:
    near = [r for r in rows(80) if r["loss"] < 0.15 and r["delay_s"] < 0.3]
    atlas = read(data_set(tmp_path / "a.parquet", near))
    answer = ask(atlas, asked(place=replace(MIDDLE, loss=0.4, delay_s=0.5, receivers=300)))
    assert answer.unknown and "the nearest measurement is" in answer.unknown[0]
    assert all(c.neighbours for c in answer.candidates), "what there is is shown all the same"


def test_too_few_measurements_tell_nothing(tmp_path: Path) -> None:
    answer = ask(read(data_set(tmp_path / "a.parquet", rows(11))), asked())
    assert answer.unknown and "only 11 points are measured" in answer.unknown[0]


def test_a_model_that_is_measured_less_is_unknown_and_the_others_are_not(tmp_path: Path) -> None:
    more = [r for r in rows(40) if r["model"] == "plain" or r["point"] < 5]
    answer = ask(read(data_set(tmp_path / "a.parquet", more)), asked())
    assert not answer.unknown and [c.verdict for c in answer.candidates][-1] == "unknown"


@settings(max_examples=30, deadline=None)
@given(deadline=st.floats(DEADLINES_S[0], DEADLINES_S[-1]))
def test_shares_in_time_lie_between_those_of_measured_deadlines(deadline: float) -> None:
    table = merged(None, rows(5))
    found = shares_in_time(table, deadline)
    assert found is not None
    below = max(i for i, d in enumerate(DEADLINES_S) if d <= deadline)
    above = min(below + 1, len(DEADLINES_S) - 1)
    shares = table["delivered_within"].to_numpy().astype(float)
    assert (shares[:, below] - 1e-6 <= found).all() and (found <= shares[:, above] + 1e-6).all()


def test_more_measurements_of_a_model_do_not_make_it_less_known(tmp_path: Path) -> None:
    atlas = read(
        data_set(tmp_path / "a.parquet", [r for r in rows(60) if r["model"] == "plain" or r["point"] <= 14])
    )
    dense, thin = (coordinates(atlas.of(model)) for model in ("plain", "sure 1"))
    somewhere = (place_of(at) for at in qmc.Halton(6, rng=9).random(2000))
    lonely = next(
        place
        for place in somewhere
        if reach(dense) < distances(dense, place.scaled()).min()
        and distances(thin, place.scaled()).min() < reach(thin)
    )
    assert all(c.verdict != "unknown" for c in ask(atlas, asked(place=lonely)).candidates)


def test_reach_is_the_loneliest_points(atlas: Atlas) -> None:
    points = np.array([[0.0, 0], [0, 1], [0, 1.5]])
    assert reach(points) == 1.0


def test_scores_tell_more_than_guessing_and_choices_give_little_away(atlas: Atlas) -> None:
    found = [s for s in scores(atlas) if s.guess > 0.05]
    assert len(found) >= 4 and all(s.mean_error < s.guess for s in found)
    assert all(0.8 <= s.covered <= 1 for s in found)
    assert {c.deadline_s: c.points for c in choices(atlas)} == {0.5: 64, 2.0: 64, 10.0: 64}
    assert all(c.lost <= c.lost_always[1] + 0.02 for c in choices(atlas))


def test_the_same_point_measured_again_replaces_itself() -> None:
    first = merged(None, rows(20))
    again = row("plain", 1, Place(**{n: first.row(0, named=True)[n] for n in Place.__dataclass_fields__}))
    more = merged(first, [{**again, "delivered": 0}])
    assert more.height == first.height
    assert more.filter(model="plain", point=1)["delivered"].item() == 0
    assert merged(first, rows(30)).height == 60


def test_the_data_set_says_what_it_holds(atlas: Atlas) -> None:
    held = contents(atlas)
    assert held["runs"] == "128: plain 64, sure 1 64" and held["points"] == 64
    assert held["code"] == "c0de" and held["seeds"] == "1"
    assert held["loss"].endswith("(designed 0 % to 40 %)")


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AtlasError, match=r"absent.parquet: is not there; `vnet atlas run` makes"):
        read(tmp_path / "absent.parquet")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(AtlasError, match="cannot be read as a data set of the atlas"):
        read(tmp_path / "text.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(AtlasError, match="is no data set of the atlas of format 1"):
        read(tmp_path / "other.parquet")


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    path = data_set(tmp_path / "a.parquet")
    write(merged(None, rows(12)), path, "again")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet"]
    assert read(path).rows.height == 24


def test_the_ranges_are_those_of_the_shipped_design() -> None:
    from orchestrator.language import units

    kinds = {"loss": units.SHARE, "rate": units.RATE, "delay": units.DURATION, "size": units.SIZE}
    scale = {"delay": 1e-9}
    path = Path(__file__).parents[2] / "topologies" / "atlas" / "atlas-broker.yaml"
    text = path.read_text()
    for axis in AXES:
        line = next(one for one in text.splitlines() if one.strip().startswith(f"{axis.parameter}:"))
        low, high = line.partition("from: ")[2].partition("}")[0].split(", ")[:2]
        low, high = low.strip(), high.removeprefix("to: ").strip()
        if axis.parameter in kinds:
            ends = [units.real(kinds[axis.parameter], t) * scale.get(axis.parameter, 1) for t in (low, high)]
        else:
            ends = [float(low), float(high)]
        assert ends == pytest.approx([axis.low, axis.high])
        assert ("scale: log" in line) == axis.log
