"""Tests the sides of a comparison, their pairs, baselines and limits, and refused combinations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic_sides import drawn, sample, side

from contract.verdict import FAILS, HOLDS
from contract.verdict import OPEN as CANNOT_TELL
from orchestrator.cli.compare import limit
from reports.compare import condition
from reports.compare.baseline import FORMAT, MARK, read_baseline, save
from reports.compare.comparison import DIFFERS, OPEN, SAME, Comparison, compare
from reports.compare.errors import CompareError
from reports.compare.pairing import matches
from reports.compare.reading import read_side
from reports.compare.side import Side, letters

P99 = ("latency_p99", "control")


def runs(letter: str, *seeds: int, schedule: str = "the same", **levels: str) -> Side:
    return side(letter, [sample(seed, {P99: 10.0 + seed}, levels, schedule) for seed in seeds])


def test_runs_with_the_same_seed_and_schedule_are_pairs_in_any_order() -> None:
    ((found,), lonely) = matches(runs("A", 1, 2, 3), runs("B", 3, 1, 2))
    assert [(a.seed, b.seed) for a, b in found.pairs] == [("1", "1"), ("2", "2"), ("3", "3")]
    assert found.why == () and lonely == []


def test_a_run_without_a_partner_says_why() -> None:
    ((found,), _) = matches(runs("A", 1, 2), runs("B", 1, 5, 6))
    assert len(found.pairs) == 1
    assert found.why == (
        "B has no further run with the seed 2 of A", "A has no further run with the seeds 5, 6 of B"
    )  # fmt: skip
    ((found,), _) = matches(runs("A", 1, 2), runs("B", 1, 2, schedule="another"))
    assert found.pairs == ()
    assert found.why == ("the runs with the seeds 1, 2 send by other schedules in A than in B",)


def test_a_factor_that_varies_within_a_side_makes_conditions_and_one_between_them_does_not() -> None:
    both = [
        *runs("A", 1, clients="10", broker="old").samples,
        *runs("A", 1, clients="20", broker="old").samples,
    ]
    new = [
        *runs("B", 1, clients="10", broker="new").samples,
        *runs("B", 1, clients="30", broker="new").samples,
    ]
    found, lonely = matches(side("A", both), side("B", new))
    assert [(one.name, len(one.pairs)) for one in found] == [("clients 10", 1)]
    assert lonely == ["only A has runs with clients 20", "only B has runs with clients 30"]


def test_sides_without_a_common_condition_are_refused() -> None:
    two = side("A", [*runs("A", 1, clients="10").samples, *runs("A", 1, clients="20").samples])
    with pytest.raises(CompareError, match="no condition in common: only A has runs with clients 10"):
        matches(two, runs("B", 1, clients="30"))


def test_sides_without_a_common_figure_are_refused() -> None:
    other = side("B", [sample(1, {("latency_p99", "video"): 3.0})])
    with pytest.raises(CompareError, match=r"no figure in common: \[control\] against \[video\]"):
        compare([runs("A", 1), other])


def test_what_only_one_side_measured_is_noted() -> None:
    more = side("B", [sample(1, {P99: 10.0, ("latency_p99", "video"): 3.0})])
    assert "only B measured: video" in compare([runs("A", 1), more]).notes


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="is not there; name a run, a campaign or a file"):
        read_side("A", tmp_path / "nothing")
    with pytest.raises(CompareError, match="holds no run and no campaign; a run has a manifest"):
        read_side("A", tmp_path)
    (tmp_path / "20260131T120000").mkdir()
    (tmp_path / "20260131T120000" / "manifest.json").write_text("{}")
    with pytest.raises(CompareError, match="none of its 1 runs is complete"):
        read_side("A", tmp_path)


def studies(factor: float = 1.0) -> tuple[Side, Side]:
    rng = np.random.default_rng(3)
    return tuple(
        side(letter, [drawn(rng, seed, one) for seed in range(6)])
        for letter, one in (("A", 1.0), ("B", factor))
    )  # type: ignore[return-value]  # two of them


def test_a_baseline_compares_as_the_side_that_it_was_saved_of(tmp_path: Path) -> None:
    a, b = studies(1.5)
    written = save(a, tmp_path / "baseline.json")
    again = read_baseline("A", tmp_path / "baseline.json")
    direct, saved = compare([a, b]), compare([again, b])
    assert [(row.key, row.finding) for row in saved.rows] == [(row.key, row.finding) for row in direct.rows]
    for one, two in zip(direct.rows, saved.rows, strict=True):
        assert two.difference.shift == pytest.approx(one.difference.shift, abs=1e-8)
    assert direct.found(DIFFERS) and written.samples == 6
    assert written.size_bytes == (tmp_path / "baseline.json").stat().st_size < 6_000


def test_a_baseline_keeps_figures_that_are_named_and_refuses_unknown_ones(tmp_path: Path) -> None:
    one = side("A", [sample(1, {P99: 10.0, ("latency_deviation", "control"): 2.0})])
    assert save(one, tmp_path / "a.json").figures == 1
    assert save(one, tmp_path / "a.json", ["latency_deviation"]).figures == 2
    with pytest.raises(CompareError, match="has no figure 'latncy_p99'; did you mean 'latency_p99'"):
        save(one, tmp_path / "a.json", ["latncy_p99"])


def test_a_file_that_is_no_baseline_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    for act in (lambda: read_side("A", other), lambda: save(studies()[0], other)):
        with pytest.raises(CompareError, match="is no baseline"):
            act()
    assert other.read_text() == "mine"


def test_a_newer_and_a_damaged_baseline_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    save(studies()[0], file)
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, MARK: FORMAT + 1}))
    with pytest.raises(
        CompareError, match=f"of format {FORMAT + 1}, and this version of vnet reads format {FORMAT}"
    ):
        read_side("A", file)
    save(studies()[0], file)
    assert read_baseline("A", file).samples, "saving again is the remedy that the error names"
    content["samples"][0]["values"].pop()
    file.write_text(json.dumps(content))
    with pytest.raises(CompareError, match="is damaged"):
        read_side("A", file)
    save(studies()[0], file)
    file.write_text(json.dumps({MARK: FORMAT, "figures": [], "samples": []}))
    with pytest.raises(CompareError, match="has no samples"):
        read_side("A", file)


def with_changes(*changes: float) -> Comparison:
    """Returns two sides whose pairs differ by these relative changes of p99."""
    a = [sample(seed, {P99: 100.0}) for seed in range(len(changes))]
    b = [sample(seed, {P99: 100.0 * (1 + change)}) for seed, change in enumerate(changes)]
    return compare([side("A", a), side("B", b)])


@pytest.mark.parametrize(
    ("text", "changes", "verdict"),
    [
        ("latency_p99[class=control] > +10 %", (0.2, 0.21, 0.22), FAILS),
        ("latency_p99[class=control] > +10 %", (0.01, 0.02, 0.03), HOLDS),
        ("latency_p99[class=control] > +10 %", (0.0, 0.1, 0.2), CANNOT_TELL),
        ("latency_p99 > 10%", (0.2,), CANNOT_TELL),
        ("latency_p99 < -5 %", (-0.2, -0.21, -0.22), FAILS),
        ('latency_p99[class="control"] < -5 %', (0.2, 0.21, 0.22), HOLDS),
        ("latency_p99[traffic_class=control] < -5 %", (-0.1, 0.0, 0.1), CANNOT_TELL),
    ],
)
def test_a_limit_is_judged_by_the_whole_interval(text: str, changes: tuple[float, ...], verdict: str) -> None:
    (found,) = condition.judge([limit(text)], with_changes(*changes))
    assert found.verdict == verdict


def test_an_increase_from_zero_is_beyond_every_limit() -> None:
    lost, few = ("messages_lost", "control"), ("messages_duplicated", "control")
    a = side("A", [sample(seed, {lost: 0.0, few: 0.0, P99: 10.0 + seed}) for seed in range(4)])
    b = side("B", [sample(seed, {lost: 900.0 + seed, few: 1.0, P99: 11.0}) for seed in range(4)])
    limits = [
        limit(text)
        for text in ("messages_lost > +10 %", "messages_lost < -10 %", "messages_duplicated > 10 %")
    ]
    found = condition.judge(limits, compare([a, b]))
    assert [one.verdict for one in found] == [FAILS, HOLDS, CANNOT_TELL]
    assert "messages lost of control: zero in A, and in B more by " in found[0].reason


def test_a_limit_is_not_kept_by_a_figure_that_one_side_lacks() -> None:
    """Shows that a limit on a latency does not hold for a class that lost all messages on one side."""
    video = ("latency_p99", "video")
    a = side("A", [sample(seed, {P99: 10.0 + seed, video: 9.0 + seed}) for seed in range(4)])
    b = side("B", [sample(seed, {P99: 10.01 + seed}) for seed in range(4)])
    whole, one = (limit(f"latency_p99{of} > +10 %") for of in ("", "[class=video]"))
    assert [found.verdict for found in condition.judge([whole], compare([a, b]))] == [HOLDS, CANNOT_TELL]
    (found,) = condition.judge([one], compare([a, b]))
    assert (found.verdict, found.reason) == (
        CANNOT_TELL, "latency p99 of video: no interval (only A measured it)",
    )  # fmt: skip


def test_several_limits_hold_together() -> None:
    """Shows that several limits are judged together: each further limit widens the intervals, so one limit
    fails alone and is undecided among thirty.
    """
    alone, found = limit("latency_p99 > +1 %"), with_changes(0.04, 0.05, 0.06)
    assert condition.judge([alone], found)[0].verdict == FAILS
    assert {one.verdict for one in condition.judge([alone] * 30, found)} == {CANNOT_TELL}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency_p99 > 10", "is no limit of a difference; write it as"),
        ("latency_p99 >= 10 %", "is no limit of a difference; write it as"),
        ("latency_p99 > 10 % always", "is no limit of a difference; write it as"),
        ("delivered exactly-once", "is no limit of a difference; write it as"),
        ("latency_p99 = 10 %", '"= 10 %" is not understood; write it as'),
        ("", "is no condition; write it as"),
        ("latency_p99[control] > 10 %", '"control" is no KEY=NAME; write it as'),
        ("latency_p99[clas=control] > 10 %", "no subject is called 'clas'; did you mean 'class'?"),
    ],
)
def test_a_text_that_is_no_limit_is_refused(text: str, said: str) -> None:
    with pytest.raises(CompareError, match=said.replace("?", r"\?")):
        limit(text)


def test_a_limit_chooses_values_by_the_keys_of_expectations() -> None:
    assert limit("latency_p99[qos=1] > 1 %").subject == (("guarantee", "QoS 1"),)
    found = limit("interruption[class=control, event=cut] > 1 %").subject
    assert found == (("traffic_class", "control"), ("event", "cut")), "columns that expectations lack, too"


def test_an_unknown_metric_and_class_are_refused_with_the_known_ones() -> None:
    found = with_changes(0.1, 0.1, 0.1)
    with pytest.raises(CompareError, match="no side measured 'latency_p9'; did you mean 'latency_p99'"):
        condition.judge([limit("latency_p9 > 1 %")], found)
    with pytest.raises(CompareError, match="no such subject: no class is 'contrl'; did you mean 'control'"):
        condition.judge([limit("latency_p99[class=contrl] > 1 %")], found)


def test_a_figure_that_is_asked_for_and_not_measured_is_refused() -> None:
    with pytest.raises(CompareError, match=r"no side measured 'latency_p9'; did you mean 'latency_p99'\?"):
        compare([runs("A", 1), runs("B", 1)], also=["latency_p9"])
    more = side("B", [sample(1, {P99: 10.0, ("latency_max", "control"): 3.0})])
    with pytest.raises(CompareError, match="A has no figure 'latency_max', so it cannot be compared"):
        compare([runs("A", 1), more], also=["latency_max"])


def test_a_baseline_in_a_new_directory(tmp_path: Path) -> None:
    written = save(runs("A", 1), tmp_path / "new" / "baseline.json")
    assert read_baseline("A", written.path).samples[0].seed == "1"


def test_equal_counts_of_one_run_are_equal_and_those_of_two_runs_are_two_draws() -> None:
    """Shows that three messages lost in each of five runs are equal counts only if both sides are the same
    runs; otherwise they are two random draws.
    """
    lost, time = ("messages_lost", "control"), ("latency_p99", "control")
    a, b = (
        side(letter, [sample(seed, {lost: 3.0, time: 10.0 + seed + more}) for seed in range(5)])
        for letter, more in (("A", 0.0), ("B", 0.01))
    )
    same = {row.key[0]: row for row in compare([a, a]).rows}
    other = {row.key[0]: row for row in compare([a, b]).rows}
    assert same["messages_lost"].finding == SAME and other["messages_lost"].finding == OPEN


def test_there_are_as_many_sides_as_letters() -> None:
    assert letters(3) == ["A", "B", "C"]
    with pytest.raises(CompareError, match="27 sides: at most 26"):
        letters(27)


def test_three_sides_are_each_compared_with_the_first() -> None:
    found = compare([runs("A", 1, 2, 3), runs("B", 1, 2, 3), runs("C", 1, 2, 3)])
    assert [(row.a, row.b) for row in found.rows] == [("A", "B"), ("A", "C")]
