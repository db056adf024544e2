"""Tests that `vnet explain` prints the same text about keys as docs/topology.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.topology.explain import UnknownKeyError, explain, known, whole_file

PAGE = (Path(__file__).parents[2] / "docs" / "topology.md").read_text(encoding="utf-8")


def test_a_path_leads_to_its_key() -> None:
    (entry,) = explain("links.wan.both.delay")
    assert (entry.path, entry.value) == ("links.NAME.both.delay", "duration")
    assert f"| `delay` | {entry.value} | {entry.default} | {entry.meaning} |" in PAGE


@pytest.mark.parametrize(
    ("asked", "below"),
    [
        ("timeline", "link-down"),
        ("timeline[0]", "link-down"),
        ("timeline[].both", "jitter"),
        ("links.wan.forward.queue", "htb"),
        ("nodes.a.software.x", "command"),
        ("campaign.design.axes.rate", "scale"),
        ("routing", "ecmp"),
    ],
)
def test_a_block_shows_its_keys(asked: str, below: str) -> None:
    assert below in {key.path for entry in explain(asked) for key in entry.keys}


def test_a_name_alone_is_found_wherever_it_stands() -> None:
    assert {entry.path for entry in explain("hold")} >= {"hold (run)"}
    assert [entry.path for entry in explain("links")] == ["links"]


def test_every_key_of_the_page_is_explained() -> None:
    names = known()
    assert len(names) > 150
    for name in names:
        assert explain(name)
        assert f"| `{name}` |" in PAGE or f"## software.NAME.{name}:" in PAGE or f"`{name}:" in PAGE, name
    assert {entry.path for entry in whole_file()} <= set(names)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("timelin", "did you mean timeline"),
        ("links.wan.bth", 'links.wan has no key "bth"; did you mean both'),
        ("links.wan.both.delay.more", 'has no key "more"'),
        ("routing.zzz", "there are: by, ecmp, family"),
        (".", "no key"),
        ("run.hold.", ""),
    ],
)
def test_near_misses_are_suggested(asked: str, said: str) -> None:
    if not said:
        assert explain(asked)
        return
    with pytest.raises(UnknownKeyError, match=said.replace("[", r"\[")):
        explain(asked)


@pytest.mark.parametrize(
    ("asked", "path", "below"),
    [
        ("software.mqtt", "nodes.NAME.software.NAME.mqtt", "keepalive"),
        ("mqtt.publish.qos", "nodes.NAME.software.NAME.mqtt.publish.qos", ""),
        ("software.mosquitto", "nodes.NAME.software.NAME", "broker"),
        ("both.delay", "links.NAME.both.delay", ""),
        ("mounts.read", "nodes.NAME.mounts.read", ""),
    ],
)
def test_the_end_of_a_path_is_enough(asked: str, path: str, below: str) -> None:
    entry = explain(asked)[0]
    assert entry.path == path
    assert not below or below in {key.path for key in entry.keys}


def test_kinds_that_share_a_key_all_say_what_it_is() -> None:
    (entry,) = explain("groups.x.software")
    keys = {key.path: key for key in entry.keys}
    assert {"`mosquitto`", "`rabbitmq`", "`mochi`"} <= set(re.split(", | or ", keys["NAME.broker"].value))
    assert "1883" in keys["NAME.port"].default and "5672" in keys["NAME.port"].default


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("link.both.delay", 'no key "link.both.delay"; did you mean links.NAME.both.delay?'),
        ("nodes.a.sees", '"nodes.a.sees" is retired; the key is nodes.NAME.mounts.read'),
        ("software.zzz.qqq", "no key"),
        ("mqtt.rate", "did you mean nodes.NAME.software.NAME.mqtt.publish.rate?"),
        ("broker.qos", '`vnet explain broker` explains "broker"'),
    ],
)
def test_what_it_says_of_wrong_and_retired_keys(asked: str, said: str) -> None:
    with pytest.raises(UnknownKeyError) as caught:
        explain(asked)
    assert said in str(caught.value)
