"""Tests the judged differences between values against scipy's tests, computation by hand, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from synthetic_sides import CLASSES, drawn, sample, side

from reports.compare.comparison import DIFFERS, OPEN, SAME, Comparison, compare
from reports.compare.difference import Difference, apart, holm, paired, repetitions
from reports.compare.side import Sample
from reports.compare.words import first_line, percent, sentence, text, up
from reports.metrics.stats import t_quantile

A, B = (10.0, 20.0, 31.0, 12.0), (11.0, 21.5, 35.0, 13.5)
# of 200 comparisons, 10 are expected to be wrong at 5 %; more than 16 are in 2 of 100 such series
COMPARISONS, MOST_ALARMS = 200, 16


def test_pairs_are_compared_by_students_t_of_their_logarithms() -> None:
    found, known = paired(A, B), scipy.stats.ttest_rel(np.log(B), np.log(A))
    assert found.ratio and found.n == 4 and found.p == pytest.approx(known.pvalue)
    low, high = known.confidence_interval(0.95)
    assert found.changes() == pytest.approx((math.expm1(low), math.expm1(high)))


def test_repetitions_that_are_not_paired_are_compared_by_welchs_t() -> None:
    found, known = apart(A, B[:3]), scipy.stats.ttest_ind(np.log(B[:3]), np.log(A), equal_var=False)
    assert found.p == pytest.approx(known.pvalue) and found.degrees == pytest.approx(known.df)
    assert found.interval() == pytest.approx(tuple(known.confidence_interval(0.95)))


def test_values_that_are_not_all_positive_are_compared_by_subtraction() -> None:
    found = paired((0.0, 2.0, 4.0), (1.0, 4.0, 7.0))
    assert not found.ratio and found.shift == 2.0 and found.change == 1.0


def test_a_single_pair_has_no_interval_and_shows_nothing() -> None:
    found = paired((10.0,), (20.0,))
    assert found.p == 1.0 and found.interval() is None and found.changes() is None
    assert apart((10.0,), (20.0, 21.0)).interval() is None


def test_two_pairs_that_are_alike_by_chance_show_nothing_and_three_do() -> None:
    assert paired((10.0, 20.0), (11.0, 22.0)).p == 1.0
    three = paired((10.0, 20.0, 30.0), (11.0, 22.0, 33.0))
    assert three.p == 0.0 and three.changes() == pytest.approx((0.1, 0.1))
    assert paired((10.0,) * 3, (10.0,) * 3).changes() == (0.0, 0.0)


def test_equal_differences_of_figures_with_few_values_are_judged_by_their_signs() -> None:
    """Shows that differences with few distinct values are judged by their signs: three equal differences of
    one tick happen by chance in one of four series.
    """
    found = paired((0.1,) * 3, (0.2,) * 3, stepped=True)
    assert found.p == 0.25 and found.changes() is None
    assert paired((0.1,) * 8, (0.2,) * 8, stepped=True).p == 2**-7
    assert paired((0.1,) * 3, (0.1,) * 3, stepped=True).changes() == (0.0, 0.0)


def test_counts_scatter_at_least_as_poisson_laws() -> None:
    """Shows that one message more in each of five pairs is no difference; the t test without Poisson's
    variance as a lower limit gives p = 0.
    """
    assert paired((0.0,) * 5, (1.0,) * 5, count=True).p > 0.05
    assert paired((0.0,) * 5, (100.0,) * 5, count=True).p < 0.001
    assert apart((4.0, 4.0), (6.0, 6.0), count=True).p > 0.05


def test_holms_correction_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == [] and holm([0.9, 0.8]) == [1.0, 1.0]


def test_further_repetitions_are_the_fewest_that_narrow_the_interval_to_the_margin() -> None:
    found = paired(A, B)
    assert found.error is not None
    more, deviation = repetitions(found, 0.02), found.error * 2
    assert more is not None and more > 0

    def half(n: int) -> float:
        return t_quantile(0.975, n - 1) * deviation / math.sqrt(n)

    assert half(4 + more) <= math.log(1.02) < half(3 + more)
    assert repetitions(found, 1e-9) is None, "more than anybody repeats"


def study(rng: np.random.Generator, first: int, factor: float = 1.0) -> list[Sample]:
    return [drawn(rng, first + number, factor) for number in range(5)]


@pytest.mark.parametrize("seeds", ["disjoint", "the same"])
def test_of_200_comparisons_of_equal_studies_at_most_16_alarm(seeds: str) -> None:
    rng, alarms = np.random.default_rng(40), 0
    for _ in range(COMPARISONS):
        sides = side("A", study(rng, 0)), side("B", study(rng, 5 if seeds == "disjoint" else 0))
        alarms += bool(compare(sides).found(DIFFERS))
    assert alarms <= MOST_ALARMS


def one_class(times: dict[int, float], factor: float, letter: str, name: str = "latency_p99") -> list[Sample]:
    return [sample(seed, {(name, "control"): value * factor}) for seed, value in times.items()]


def compared(scatter: float, factor: float, n: int = 8) -> Comparison:
    """Returns two sides of n pairs whose values vary much from pair to pair, and within a pair by
    `scatter`.
    """
    rng = np.random.default_rng(7)
    times = {seed: float(rng.uniform(20, 200)) for seed in range(n)}
    moved = {seed: value * float(np.exp(rng.normal(0, scatter))) for seed, value in times.items()}
    return compare([side("A", one_class(times, 1, "A")), side("B", one_class(moved, factor, "B"))])


def test_a_planted_regression_of_5_percent_is_found_in_pairs_and_not_without_them() -> None:
    found = compared(0.01, 1.05)
    (row,) = found.found(DIFFERS)
    low, high = row.difference.changes() or (0.0, 0.0)
    assert low < 0.05 < high and "% slower (95 %: " in sentence(row)
    a, b = ([m.value for one in s.samples for m in one.metrics.values()] for s in found.sides)
    assert apart(a, b).p > 0.5, "the runs differ far more from each other than the sides do"


def test_a_null_difference_is_called_null_and_a_wide_interval_is_not() -> None:
    (row,) = compared(0.005, 1.0).rows
    assert row.finding == SAME and sentence(row).startswith("no difference larger than ")
    (row,) = compared(0.2, 1.0).rows
    assert row.finding == OPEN and row.more and f"; {row.more} more repetitions would" in sentence(row)


def test_more_of_what_is_better_is_not_called_slower() -> None:
    rates = {seed: 10.0 + seed for seed in range(4)}
    sides = [
        side(letter, one_class(rates, factor, letter, "transfer_rate"))
        for letter, factor in (("A", 1), ("B", 0.88))
    ]
    (row,) = compare(sides).rows
    assert sentence(row) == "B is 12 % lower (95 %: 12 to 12)"


def test_the_answer_comes_first_in_the_text() -> None:
    rng = np.random.default_rng(1)
    found = compare([side("A", study(rng, 0)), side("B", study(rng, 0, 2.0))])
    lines = text(found)
    assert lines[:3] == ["A = study-A (5 runs)", "B = study-B (5 runs)", first_line(found)]
    assert lines[3] == "  no recorded setting, version or machine differs"
    assert "latency p99 of control" in lines[4] and "slower (95 %: " in lines[4]
    assert f"Holm's correction for {found.family} figures" in lines[-1]
    assert {row.key[1].traffic_class for row in found.rows} == set(CLASSES)


def test_a_figure_that_is_zero_on_both_sides_makes_no_test() -> None:
    """Shows that a figure that is zero on both sides is not tested; it would widen all other intervals."""
    values = {("messages_lost", "control"): 0.0, ("latency_p99", "control"): 10.0}
    rows = [sample(seed, values | {("latency_p99", "control"): 10.0 + seed}) for seed in range(4)]
    found = compare([side("A", rows), side("B", rows)])
    assert found.family == 0 and {row.finding for row in found.rows} == {SAME}


def test_figures_with_the_same_reason_share_a_line() -> None:
    found = compare(
        [side("A", study(np.random.default_rng(1), 0)[:1]), side("B", study(np.random.default_rng(2), 9)[:1])]
    )
    told = [line for line in text(found) if "cannot tell" in line]
    (line,) = told
    assert line.endswith(": cannot tell: one run of a side shows no scatter; 3 or more on each side would")
    assert " and 11 more: " in line


@pytest.mark.parametrize(("share", "said"), [(0.0, "0"), (0.0123, "1.3"), (0.05, "5"), (0.1001, "11")])
def test_a_bound_is_rounded_up(share: float, said: str) -> None:
    assert up(share) == said


def test_percent_has_two_digits() -> None:
    assert [percent(one) for one in (0.123, -0.0123, 2.5, 0.0)] == ["12", "1.2", "250", "0"]


def test_a_difference_from_zero_has_no_percent() -> None:
    found = Difference(0.0, 5.0, 5, 5.0, 0.5, 4, False, "made")
    assert found.change is None and found.changes() is None and found.p < 0.01
