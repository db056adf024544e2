"""Tests that a claims file is checked as it is read: every mistake has file, line, value and rule, and
nothing is executed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.claims.document import ClaimsError, read_claims
from reports.claims.evidence import Evidence, Factor, Level, Quantity
from reports.claims.expression import ExpressionError, parse
from reports.claims.rules import RULES
from reports.claims.template import parse_template
from reports.claims.verdict import FAILS, HOLDS, OPEN, Value
from reports.metrics.metric import Of
from reports.papers import PAPERS

GOOD = """\
factor: {name: rate, title: rate, levels: [10, 100, 1000]}
quantities:
  mqtt: {metric: latency_p50, traffic_class: mqtt, scenario: lte}
  udp: {metric: latency_p50, traffic_class: udp, scenario: lte}
  other: {metric: latency_p50, scenario: ethernet}
claims:
  above-udp:
    figure: 7
    text: MQTT is slower than UDP.
    rule: at every rate
    judge: {every_level: mqtt / udp, above: 1, says: "{value:.2f} times", needs: both protocols}
"""


def read(folder: Path, text: str) -> str:
    path = folder / "claims.yaml"
    path.write_text(text)
    with pytest.raises(ClaimsError) as found:
        read_claims(path)
    return str(found.value)


def test_every_papers_claims_can_be_read() -> None:
    for paper in PAPERS.values():
        claims = paper.claims().claims
        assert claims and len({claim.key for claim in claims}) == len(claims)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(GOOD)
    (claim,) = read_claims(path).claims
    assert (claim.key, claim.figures, [q.name for q in claim.quantities]) == (
        "above-udp",
        "7",
        ["mqtt", "udp"],
    )


@pytest.mark.parametrize(
    "written",
    [
        "{metric: latency_p50, class: udp, qos: 1, scenario: lte}",
        '{metric: "latency_p50[class=udp, qos=1]", scenario: lte}',
        '{metric: "latency_p50[qos=1]", class: udp, scenario: lte}',
    ],
)
def test_quantities_choose_values_as_expectations_do(tmp_path: Path, written: str) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(GOOD.replace("{metric: latency_p50, traffic_class: udp, scenario: lte}", written))
    found = read_claims(path).quantities["udp"]
    assert found == Quantity("udp", "latency_p50", (Of(traffic_class="udp", guarantee="QoS 1"),), "lte")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("above: 1", "above: much", ":11: claims.above-udp.judge.above: 'much' is not a number"),
        (", above: 1", "", ":11: claims.above-udp.judge: has no bound; write above, at_least"),
        (
            "mqtt / udp",
            "mqtt / tcp",
            "every_level: tcp is no figure of this file; known are mqtt, udp, other",
        ),
        ("mqtt / udp", "1 / 2", "every_level: names no figure"),
        ("mqtt / udp", "mqtt ** udp", "'*' stands where a number or a figure is expected"),
        ("mqtt / udp", "__import__('os')", "'(' at character 11: expected an operator or the end"),
        ("{value:.2f}", "{value:x}", "'x' is no form of a number"),
        ("{value:.2f} times", "{value", "a brace is not paired"),
        ("every_level:", "always:", ":11: claims.above-udp.judge: names 0 rules; write one of every_level,"),
        (
            "rule: at every rate",
            "reason: none",
            ":10: claims.above-udp.reason: is not known; known are figure",
        ),
        ("text: MQTT", "text: [a] #", ":9: claims.above-udp.text: is no text"),
        ("levels: [10, 100, 1000]", "levels: 3", ":1: factor.levels: 3 is no list"),
        ("title: rate, ", "", ":1: factor.title: is missing"),
        ("traffic_class: udp", "clas: udp", ":4: quantities.udp.clas: is not known; known are metric"),
        (
            "traffic_class: udp",
            "traffic_class: udp, class: udp",
            ":4: quantities.udp.class: chooses traffic_cl",
        ),
        (
            "latency_p50, traffic_class: udp",
            '"latency_p50[udp]", qos: 1',
            ":4: quantities.udp.metric: 'latency_p50[udp]': \"udp\"",
        ),
        (
            "latency_p50, traffic_class: udp",
            '"latency_p50[clas=udp]", qos: 1',
            ":4: quantities.udp.clas: is not known; known are",
        ),
        ("above: 1", "above: 1, level: 7", "7 is no level of rate; write 10, 100, 1000"),
        ("every_level: mqtt / udp, above: 1", "steeper_step: mqtt", "judge.says: is not known"),
        ("quantities:", "figures:", ":2: figures: is not known; known are factor, quantities, claims"),
        ("factor: {", "factor: [", "is no YAML"),
    ],
)
def test_a_mistake_has_place_value_and_rule(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    text = read(tmp_path, GOOD.replace(old, new))
    assert said in text and str(tmp_path / "claims.yaml") in text


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("steps: mqtt", "steps compares 2 or more levels, 1 given; add levels, or write every_level"),
        ("steps_down: mqtt", "steps_down compares 2 or more"),
        ('rises: mqtt, falls: udp, says: "{value}"', "rises compares 2 or more"),
        ("level_above: mqtt, level: 10, times: 2", "level_above compares 2 or more"),
        ("spread: mqtt, by: 0.1", "spread compares 2 or more"),
        ("steeper_step: mqtt, times: 2", "steeper_step compares 3 or more"),
    ],
)
def test_a_rule_over_levels_needs_several(tmp_path: Path, judge: str, said: str) -> None:
    """Shows that a rule over levels refuses a single level, which could never contradict the claim."""
    text = GOOD.replace("levels: [10, 100, 1000]", "levels: [10]")
    text = text.replace('every_level: mqtt / udp, above: 1, says: "{value:.2f} times"', judge)
    assert said in read(tmp_path, text)


def test_a_correlation_of_three_steps_has_no_interval(tmp_path: Path) -> None:
    text = GOOD.replace("traffic_class: udp", "nodes: broker").replace(
        'every_level: mqtt / udp, above: 1, says: "{value:.2f} times", needs: both protocols',
        "rank_correlation: udp, at_least: 0.9, fewest_steps: 3",
    )
    assert "fewest_steps 3 gives no interval; write 4 or more" in read(tmp_path, text)


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    second = GOOD.split("claims:\n")[1].replace("above-udp", "again").replace("above: 1", "above: x")
    text = read(tmp_path, GOOD.replace("mqtt / udp", "mqtt / tcp") + second)
    assert len(text.splitlines()) == 2 and "claims.above-udp" in text and "claims.again" in text


def test_arithmetic_carries_the_interval() -> None:
    known = {"a": Value(10, 9, 11, "ms"), "b": Value(4, 3, 5, "ms"), "zero": Value(0, 0, 0, "")}

    def value(text: str) -> tuple[float, float | None] | None:
        found = parse(text).value(known.get)
        return None if found is None else (found.value, found.half)

    # both values are of one run, so they may vary together and their intervals add
    assert value("a + b") == (14, 2) and value("a - b") == (6, 2)
    assert value("a - b - b") == (2, 3) and value("-(a - b) * 2") == (-12, 4)
    assert value("100 - a") == (90, 1) and value("a / 2 + 3 * b") == (17, 3.5)
    # a negative factor gives no negative width
    assert value("a * -2") == (-20, 2) and value("(0 - 2) * a") == (-20, 2)
    assert value("a * (1 / 2)") == (5, 0.5) and value("a / (1 + 3)") == (2.5, 0.25)
    of_both = parse("a / b").value(known.get)
    assert of_both is not None and (of_both.value, of_both.low, of_both.high) == (2.5, 9 / 5, 11 / 3)
    assert value("a / (b - 3)") == (10, None)  # the divisor's interval reaches zero
    assert value("a / zero") is None and value("a + unknown") is None


class Fixed(Evidence):
    """Evidence that has one value, at the level 10 of the scenario lte."""

    def __init__(self, value: Value) -> None:
        self.factor, self.fixed, self.series = Factor("rate", "rate", (10,)), value, {("lte", 10): ""}

    def value(self, quantity: Quantity, level: Level) -> Value | None:
        return self.fixed


@pytest.mark.parametrize(
    ("bounds", "low", "high", "verdict"),
    [
        ("above: 3", 4, 6, HOLDS), ("above: 7", 4, 6, FAILS), ("above: 4.5", 4, 6, OPEN),
        ("below: 7", 4, 6, HOLDS), ("at_most: 3", 4, 6, FAILS), ("below: 5.5", 4, 6, OPEN),
        ("above: 3, below: 4.5", 4, 6, OPEN), ("above: 3, below: 3.5", 4, 6, FAILS),
        ("at_least: 5", 5, 5, HOLDS), ("above: 5", 5, 5, FAILS), ("above: 3, at_most: 4", None, None, OPEN),
    ],
)  # fmt: skip
def test_every_bound_is_judged_with_the_interval(
    tmp_path: Path, bounds: str, low: float | None, high: float | None, verdict: str
) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(GOOD.replace("mqtt / udp, above: 1", f"mqtt, {bounds}, interval: true"))
    (claim,) = read_claims(path).claims
    assert claim.how.judge(Fixed(Value(5, low, high, "ms"))).verdict == verdict


@pytest.mark.parametrize("text", ["", "a +", "(a", "a b", "a.b", "+", "a)", "a" * 201, "1e5 *"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_a_sentence_shows_values_of_several_levels_side_by_side() -> None:
    one, two = {"a": Value(1, 0.5, 1.5, "ms")}, {"a": Value(2, None, None, "ms")}
    assert parse_template("{a}, {a:unit}, {2 * a:.1f}").text([one.get]) == "1.00 ± 0.50, 1.00 ± 0.50 ms, 2.0"
    assert parse_template("{a:.0f} ms").text([one.get, two.get]) == "1 / 2 ms"
    assert parse_template("{a} of {b}").text([one.get]) is None


def test_the_example_of_the_docs_is_a_claims_file(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
    path = tmp_path / "claims.yaml"
    path.write_text(page.split("### claims.yaml\n```yaml\n")[1].split("```")[0])
    (claim,) = read_claims(path).claims
    assert claim.key == "second-is-slower" and claim.figures == "12"
    known = page.split("| rule | the claim holds if |")[1].split("### What")[0]
    assert all(f"`{name}: E" in known for name in RULES)
