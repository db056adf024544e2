"""Tests that expectations are checked before the run: each mistake with its place, value, rule and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from malformed import BASE

from contract.metrics import METRICS, WHOLE
from contract.plan import Bounds, Expectation
from orchestrator.language import condition
from orchestrator.language.units import UnitError
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.conditions import failing
from orchestrator.topology.loading import parse

ROOT = Path(__file__).parents[2]
CLASS = "client.pub"
LABEL = "link-down wan for 2 s"
FIRST = BASE.count("\n") + 2  # line of the first expectation


def planned(*items: str) -> tuple[Expectation, ...]:
    text = BASE + "expect:\n" + "".join(f"  - {item}\n" for item in items)
    return make_plan(parse("file.yaml", text.encode())).expectations


def problems(*items: str) -> list[str]:
    with pytest.raises(TopologyError) as caught:
        planned(*items)
    return [str(problem) for problem in caught.value.problems]


def test_mapping_and_line_mean_the_same() -> None:
    pairs = [
        (f"{{metric: latency_p99, class: {CLASS}, below: 500 ms}}", f'"latency_p99[class={CLASS}] < 500 ms"'),
        ("{metric: messages_lost, qos: 1, at_most: 0}", '"messages_lost[qos=1] <= 0"'),
        (
            f"{{metric: throughput, link: wan, at_least: 9 Mbit/s, during: {LABEL}}}",
            f"'throughput[link=wan] >= 9 Mbit/s during \"{LABEL}\"'",
        ),
        (f"{{metric: recovery, after: {LABEL}, below: 10 s}}", f"'recovery < 10 s after \"{LABEL}\"'"),
        (f"{{delivered: exactly-once, class: {CLASS}}}", f'"delivered exactly-once [class={CLASS}]"'),
        ('{log: broker, never: "error"}', "'log broker never \"error\"'"),
        ("{log: broker, eventually: ready}", "log broker eventually ready"),
        ("{event: failed, never: true}", "event failed never"),
        ("{event: failed, group: client, never: denied}", "'event failed [group=client] never \"denied\"'"),
        (
            "{metric: messages_received, eventually: {above: 100, within: 20 s}}",
            "messages_received > 100 eventually within 20 s",
        ),
        (
            "{metric: cpu, nodes: broker, always: {below: 80 %}, every: 2 s}",
            '"cpu[nodes=broker] < 80 % always every 2 s"',
        ),
    ]  # fmt: skip
    for mapping, line in pairs:
        assert planned(mapping) == planned(line), line


def test_what_the_plan_holds() -> None:
    (one,) = planned(f"{{metric: latency_p99, class: {CLASS}, below: 0.5 s, after: {LABEL}}}")
    assert one == Expectation(
        text=f"latency_p99 of class {CLASS} below 0.5 s after {LABEL}",
        subject="metric",
        name="latency_p99",
        of={"traffic_class": CLASS},
        bounds=Bounds(below=500.0),
        unit="ms",
        after=LABEL,
    )


MISTAKES = {
    "{metric: latency_p9, below: 5 ms}": (
        '[0].metric: "latency_p9": is no metric', 'did you mean "latency_p99"?',
    ),
    "{metric: p99, below: 5 ms}": ('[0].metric: "p99"', "latency_p99, latency_p99.9"),
    "{metric: latency_p99, class: client.pup, below: 5 ms}": (
        '[0].class: "client.pup": no class is called that', f'did you mean "{CLASS}"?',
    ),
    "{metric: link_carried, link: wam, at_least: 1 Mbit/s}": ('[0].link: "wam"', 'did you mean "wan"?'),
    "{metric: cpu, group: clent, below: 5 %}": ('[0].group: "clent"', 'did you mean "client"?'),
    "{metric: wire_rate, capture: maim, below: 1 Mbit/s}": ('[0].capture: "maim"', 'did you mean "main"?'),
    "{metric: latency_p99, below: 5 ms, during: rain}": (
        '[0].during: "rain": no event of the timeline is called that', f"{LABEL}",
    ),
    "{log: brokr, never: error}": ('[0].log: "brokr": no node or group', 'did you mean "broker"?'),
    "{log: client, never: error}": ('[0].log: "client": no node or group with programs', "broker"),
    "{event: disconected, never: true}": ('[0].event: "disconected"', 'did you mean "disconnected"?'),
    "{event: failed, group: clent, never: true}": ('[0].group: "clent"', 'did you mean "client"?'),
    "{event: failed, class: client, never: true}": ("[0].class: does not go with this subject", "group"),
    "{event: failed, never: '('}": ("is no regular expression", "escape"),
    f"{{event: {LABEL}, group: client, never: true}}": ("which has none", "a step of a session"),
    f"{{event: {LABEL}, never: x}}": ("which has none", "a step of a session"),
    "{metric: latency_p99, below: 5 Mbit/s}": ('[0].below: "5 Mbit/s"', "20 ms"),
    "{metric: latency_p99, below: 5}": ("[0].below: 5: has no unit", "5 ms"),
    "{metric: messages_lost, at_most: 3 ms}": ('[0].at_most: "3 ms": is in "ms", the metric in', '"5"'),
    "{metric: link_carried, at_least: 9 MB/s}": ("counts bytes; network rates are in bits", "kbit/s"),
    "{metric: latency_p99}": ("[0]: has 0 conditions", "below"),
    "{metric: latency_p99, below: 5 ms, never: {above: 9 ms}}": ("[0]: has 2 conditions", "always"),
    "{metric: latency_p99, below: 5 ms, above: 6 ms}": ("[0]: no value is in this range", "smaller"),
    "{metric: latency_p99, below: 5 ms, at_most: 6 ms}": ("[0].at_most", "one of the two"),
    "{metric: latency_p99, log: broker, below: 5 ms}": ("[0]: has metric and log", "exactly one"),
    "{below: 5 ms}": ("[0]: has no subject", "exactly one"),
    "{metric: latency_p99, link: wan, below: 5 ms}": ("[0].link", "it is of: class, guarantee"),
    "{metric: recovery, below: 5 s}": ("[0]: recovery needs the event", "after"),
    "{metric: transfer_rate, during: x, above: 1 Mbit/s}": ("always of the whole run", "leave it out"),
    "{metric: overhead, always: {below: 5 %}}": ("[0].always: overhead has no series", "latency_p99"),
    "{metric: latency_p99, never: {}}": ("[0].never: has no bound", "above"),
    "{metric: latency_p99, never: {above: 5 ms, within: 2 s}}": ("[0].never.within: does not go", "leave"),
    "{metric: latency_p99, never: slow}": ('[0].never: "slow": a text belongs to `log`', "bounds"),
    "{log: broker, never: '('}": ("is no regular expression", "escape"),
    "{log: broker, eventually: {text: x, within: 2 s}}": ("[0].eventually.within", "leave it out"),
    "{log: broker, below: 5}": ("[0].below: does not go with this subject", "eventually"),
    "{delivered: at-once}": ('[0].delivered: "at-once"', "exactly-once"),
    "{delivered: exactly-once, link: wan}": ("[0].link: does not go with this subject", "class"),
    "{metrics: latency_p99}": ("[0].metrics", 'did you mean "metric"?'),
    "latency_p99[class=client.pub] ~ 5 ms": ("[0]", "is not understood"),
    '"latency_p99[class] < 5 ms"': ("is no KEY=NAME", "class=control"),
    "latency_p99 < 5 ms < 6 ms": ("`below` stands twice", "two conditions"),
    '"latency_p99[class=a, class=b] < 6 ms"': ("`class` stands twice", "two conditions"),
    "{metric: throughput, at_least: 9 Mbit/s}": ("the metric in frames/s", "`link: NAME`"),
    "{metric: latency_p99, below: 5 ms, every: 2 s}": ("[0].every: no series is judged", "always"),
    "{log: broker, never: x, every: 2 s}": ("[0].every: no series is judged", "always"),
    "log broker eventually ready within 20 s": ("[0].eventually.within", "leave it out"),
    "log broker never error < 5": ("[0].never.below", "leave it out"),
    '"latency_p99[below=5 ms] < 6 ms"': ("`below` stands twice", "two conditions"),
    '"latency_p99[qos=\u00b2] < 6 ms"': ("[0].qos", "file.yaml"),
    "latency_p99 < 5 ms within 3 s": ("`within` belongs to `eventually`", "eventually within"),
}  # fmt: skip


@pytest.mark.parametrize("item", MISTAKES)
def test_a_mistake_is_refused_with_its_remedy(item: str) -> None:
    rule, remedy = MISTAKES[item]
    found = problems(item)
    assert any(
        rule in one and remedy in one and one.startswith(f"file.yaml:{FIRST}: expect") for one in found
    ), found


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    found = problems(
        "{metric: nothing, below: 5}", "{metric: cpu, below: 5 %}", "{metric: latency_p99}", "{delivered: x}"
    )
    assert [one.split(": ")[0] for one in found] == [f"file.yaml:{FIRST + n}" for n in (0, 2, 3)]
    assert [one.split(": ")[1].split(".")[0] for one in found] == ["expect[0]", "expect[2]", "expect[3]"]


def test_the_same_expectation_twice_is_a_mistake() -> None:
    assert "stands twice" in problems("messages_lost <= 0", "messages_lost <= 0")[0]


def test_fail_if_is_the_opposite() -> None:
    ((_, one),) = failing(["latency_p99[class=a] > 500 ms"]).written
    assert (one.metric, one.traffic_class, one.at_most) == ("latency_p99", "a", "500 ms")
    for text in ("log broker never x", "latency_p99 > 5 ms always", "nothing", "latency_p9 > 5 ms"):
        with pytest.raises(TopologyError) as caught:
            failing([text])
        assert str(caught.value).startswith("--fail-if: "), caught.value


@pytest.mark.parametrize(
    ("unit", "written", "value"),
    [
        ("ms", "2 s", 2000.0), ("s", "500 ms", 0.5), ("Mbit/s", "9 Mbit/s", 9.0), ("kB/s", "80 kbit/s", 10.0),
        ("MB", "2 MB", 2.0), ("% of a core", "150 %", 150.0), ("%", 5, 5.0), ("messages", "3 messages", 3.0),
        ("messages", 0, 0.0), ("1 is even", "0.9", 0.9),
    ],
)  # fmt: skip
def test_amounts(unit: str, written: str | int, value: float) -> None:
    assert condition.amount(unit, written) == pytest.approx(value)


@pytest.mark.parametrize(
    ("unit", "written"), [("ms", 5), ("ms", "5 %"), ("messages", "a"), ("messages", True), ("%", "5 ms")]
)
def test_amounts_of_another_unit(unit: str, written: str | int) -> None:
    with pytest.raises(UnitError):
        condition.amount(unit, written)


def test_the_list_of_metrics_is_that_of_recorded_runs() -> None:
    """Compares names, units and columns of every metric with the reference data of the golden runs."""
    found = 0
    for file in (ROOT / "tests/goldens/reference").glob("*/summary.json"):
        for row in map(json.loads, file.read_text().splitlines()):
            known = METRICS[row["name"]]
            rest = {"name", "value", "unit", "n", "low", "high", "method", "limits"}
            of = {column for column in row.keys() - rest if row[column] is not None}
            assert known.unit == row["unit"] and of <= set(known.of), row["name"]
            if row["low"] is not None:
                assert known.known == "estimated", row["name"]
            found += 1
    assert found > 100 and METRICS.keys() > WHOLE
