"""Tests that a key from another tool's files gets the corresponding topology key as remedy, at the place
where it belongs.
"""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.topology import TopologyError
from orchestrator.topology.explain import known
from orchestrator.topology.loading import parse
from orchestrator.topology.validation import _SAME_WORD

FILE = """name: x
segments: {a: {subnet: 10.1.0.0/24}, b: {subnet: 10.1.0.0/24}}
nodes: {n: {segment: a%(node)s}}
links: {l: {between: [a, b], both: {delay: 1 ms%(link)s}}}
run: {drain: 1 s%(run)s}
"""


def mistake(**more: str) -> str:
    text = FILE % {place: f", {more[place]}" if place in more else "" for place in ("node", "link", "run")}
    with pytest.raises(TopologyError) as caught:
        parse("x.yaml", text.encode())
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ({"link": "latency: 5 ms"}, 'links.l.both.latency: "5 ms": is not a key here; write "delay"'),
        ({"link": "bandwidth: 5 Mbit/s"}, 'write "rate"'),
        ({"link": "packet-loss: 1 %"}, 'write "loss"'),
        ({"run": "duration: 60 s"}, 'run.duration: "60 s": is not a key here; write "hold"'),
        ({"node": 'ports: ["80:80"]'}, "nodes of a lab reach all ports of each other"),
        ({"link": "colour: red"}, "keys: backpressure, "),
    ],
)
def test_the_remedy_is_the_key_of_topologies(more: dict[str, Any], remedy: str) -> None:
    assert remedy in mistake(**more)


def test_a_list_of_keys_is_whole() -> None:
    text = mistake(link="colour: red")
    assert "..." not in text and text.count(", ") > 12 and ", rate" in text


def test_the_table_names_keys_that_exist_and_none_that_is_one() -> None:
    keys = set(known())
    assert {key for found in _SAME_WORD.values() for key in found} <= keys
    assert [word for word, found in _SAME_WORD.items() if word in found] == []
