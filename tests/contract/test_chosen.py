"""Tests the keys that choose values of a metric, and their form in brackets."""

from __future__ import annotations

import pytest

from contract.chosen import COLUMNS, SHORT, ChosenError, bracketed, column
from orchestrator.topology.expect import Chosen
from reports.compare.condition import NAMES
from reports.metrics.metric import OF


def test_a_metric_has_its_keys_in_brackets() -> None:
    assert bracketed("latency_p99") == ("latency_p99", {})
    assert bracketed(' latency_p99[class="site a", qos=1] ') == ("latency_p99", {"class": "site a", "qos": 1})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency_p99[site-a]", '"site-a" is no KEY=NAME; write for example "\\[class=control\\]"'),
        ("latency_p99[class=]", '"class=" is no KEY=NAME'),
        ("latency_p99[class=a] > 3", "is no METRIC"),
        ("latency_p99[class=a", "is no METRIC"),
        ("latency_p99[qos=1, qos=2]", "`qos` stands twice; leave out one of them"),
    ],
)
def test_brackets_that_are_not_understood_are_refused(text: str, said: str) -> None:
    with pytest.raises(ChosenError, match=said):
        bracketed(text)


def test_every_key_is_one_of_expectations_and_of_comparisons_and_means_a_column() -> None:
    keys = {field.alias or name for name, field in Chosen.model_fields.items()} - {"during", "after"}
    assert keys == {*COLUMNS, SHORT}
    assert keys <= NAMES.keys() and set(COLUMNS.values()) <= set(OF)
    assert column("class", "up") == ("traffic_class", "up") and column("clas", "up") is None
    assert column(SHORT, 1) == ("guarantee", "QoS 1")
