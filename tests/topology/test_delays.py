"""Tests delay distributions of a user's own: what a file of samples becomes, and each mistake with its file,
line, value and remedy.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.lab import shape
from orchestrator.plan.bridge_vms import with_bridge_vms
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.delays import SCALE, DelaysError, read
from orchestrator.topology.loading import load

LINK = """\
name: small
segments: {left: {subnet: 10.1.0.0/24}, right: {subnet: 10.1.0.0/24}}
nodes: {a: {segment: left}, b: {segment: right}}
links: {wan: {between: [left, right], both: {delays: own.csv}}}
"""


@settings(deadline=None)
@given(st.lists(st.floats(0, 10_000), min_size=2, max_size=300))
def test_samples_come_back_as_their_own_quantiles(samples: list[float]) -> None:
    """Shows that the table's quantiles equal those of the samples, within a microsecond and one step of the
    table.
    """
    made = read("delay_ms\n" + "\n".join(map(repr, samples)))
    back = [made.delay_ns + made.jitter_ns * e / SCALE for e in made.entries]
    ordered = sorted(samples)
    step = 1000 + made.jitter_ns / SCALE + (ordered[-1] - ordered[0]) * 1e6 * len(ordered) / 4096
    assert len(back) == 4096 and back == sorted(back) and max(map(abs, made.entries)) <= 32767
    assert min(back) >= ordered[0] * 1e6 - step and max(back) <= ordered[-1] * 1e6 + step
    middle = (ordered[(len(ordered) - 1) // 2] * 1e6, ordered[len(ordered) // 2] * 1e6)
    assert middle[0] - step <= (back[2047] + back[2048]) / 2 <= middle[1] + step


def test_quantiles_are_joined_by_lines() -> None:
    made = read("quantile,delay_us\n0,1000\n0.5,2000\n1,12000\n")
    back = [made.delay_ns + made.jitter_ns * e / SCALE for e in made.entries]
    assert back[1024] == pytest.approx(1.5e6, abs=2000) and back[3072] == pytest.approx(7e6, abs=4000)
    assert made.delay_ns == pytest.approx(4.25e6, abs=1000), "the mean"


@pytest.mark.parametrize(("text", "line", "value", "rule"), [
    ("", 1, "", "is empty"),
    ("delay\n1\n2\n", 1, "delay", "names other columns"),
    ("delay_min\n1\n2\n", 1, "delay_min", "names other columns"),
    ("quantile\n1\n", 1, "quantile", "names other columns"),
    ("delay_ms\n1\n", 2, "", "fewer than two"),
    ("delay_ms\n1\n\n-2\n", 4, "-2 ms", "is negative"),
    ("delay_ms\n1\nfast\n", 3, "fast", "is not a number"),
    ("delay_ms\n1\nnan\n", 3, "nan", "is not a finite number"),
    ("delay_ms\n1\n1,2\n", 3, "1,2", "has 2 values, not 1"),
    ("delay_s\n1\n300\n", 3, "300 s", "more than 274 s"),
    ("quantile,delay_ms\n0,1\n1.5,2\n", 3, "1.5", "is no quantile"),
    ("quantile,delay_ms\n0.5,1\n0.5,2\n", 3, "0.5", "does not rise"),
    ("quantile,delay_ms\n0,5\n1,2\n", 3, "2", "falls where its quantile rises"),
])  # fmt: skip
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, value: str, rule: str) -> None:
    (tmp_path / "x.yaml").write_text(LINK)
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(TopologyError) as caught:
        load(tmp_path / "x.yaml")
    (said,) = {str(problem) for problem in caught.value.problems}
    assert said.startswith(f"{tmp_path}/own.csv:{line}: delays: ") and value in said and rule in said


@settings(deadline=None)
@given(st.text(alphabet="delay_msquanti,0123456789.-\n e", max_size=80))
def test_any_text_is_delays_or_a_told_mistake(text: str) -> None:
    try:
        assert read(text).delay_ns >= 0
    except DelaysError as error:
        assert error.line >= 1 and error.rule and error.remedy


def test_what_stands_beside_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(LINK.replace("own.csv", "own.csv, jitter: 1 ms"))
    with pytest.raises(TopologyError) as caught:
        load(tmp_path / "x.yaml")
    said = "\n".join(map(str, caught.value.problems))
    assert "x.yaml:4: links.wan.both.delays: " in said and "cannot be read (No such file" in said
    assert "links.wan.both.jitter: conflicts with `delays`" in said


def test_the_plan_has_the_table_once_and_tc_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(LINK)
    (tmp_path / "own.csv").write_text("delay_ms\n" + "\n".join(str(1 + n**2 / 100) for n in range(100)))
    plan = make_plan(load(tmp_path / "x.yaml"))
    (name,) = plan.tables
    assert len(plan.tables[name]) == 4096
    (step,) = [s for s in plan.steps if s.tool == "tc"]
    assert step.text.count(f"distribution {name}") == 2


def test_netem_inside_a_virtual_machine_has_no_such_table(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(LINK)
    (tmp_path / "own.csv").write_text("delay_ms\n1\n2\n")
    with pytest.raises(TopologyError) as caught:
        with_bridge_vms(make_plan(load(tmp_path / "x.yaml")))
    assert "x.yaml:4: links.wan: its `delays` need a table" in str(caught.value.problems[0])


def test_the_distance_tells_one_law_from_another() -> None:
    draw = random.Random(4)
    wanted = sorted(draw.expovariate(1 / 5e6) for _ in range(4096))
    same = [draw.choice(wanted) for _ in range(1000)]
    told = shape.critical(1000, 3.0)
    assert shape.distance(same, wanted) < told < 0.06
    other = [draw.uniform(0, 10e6) for _ in range(1000)]  # samples of another distribution with the same mean
    assert shape.distance(other, wanted) > 2 * told
    late = [value + 1e6 for value in same]
    assert shape.distance(late, wanted) > told > shape.distance(late, wanted, tolerance_ns=1e6)


def test_the_distance_is_kolmogorovs() -> None:
    """Compares with a Kolmogorov distance computed by hand: of 3 samples from a distribution with 4 equally
    likely values, 2/3 are at most 1, where the distribution has 1/4.
    """
    assert shape.distance([1, 1, 4], [1, 2, 3, 4]) == pytest.approx(2 / 3 - 1 / 4)
