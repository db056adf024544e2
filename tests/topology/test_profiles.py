"""Tests profiles: shipped ones are complete, a topology's own values override them, and mistakes are
reported.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.plan import Link
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError, profiles
from orchestrator.topology.loading import load, parse

LINK = """\
name: small
segments: {{left: {{subnet: 10.1.0.0/24}}, right: {{subnet: 10.1.0.0/24}}}}
nodes: {{a: {{segment: left}}, b: {{segment: right}}}}
links: {{wan: {{between: [left, right], {impaired}}}}}
"""


def text(impaired: str) -> bytes:
    return LINK.format(impaired=impaired).encode()


@pytest.mark.parametrize("name", profiles.names(Path("/nowhere")))
def test_every_profile_is_whole(name: str) -> None:
    """Shows that every profile is valid, can be planned, and has a source for each figure."""
    profile = profiles.find(name, Path("/nowhere"))
    assert all(len(source) > 10 for source in profile.sources.values())
    plan = make_plan(parse("x.yaml", text(f"both: {{profile: {name}}}")))
    (link,) = plan.links
    assert (link.forward.impairment.present or link.reverse.impairment.present) is (name != "ideal")


def test_the_papers_figures() -> None:
    """Shows that profiles have the papers' figures: vNET (2014) 250 kbit/s, 30 +- 5 ms, 30 %; RESERVE D4.6
    LTE's means of 15 to 25 ms.
    """
    (link,) = make_plan(parse("x.yaml", text("both: {profile: constrained}"))).links
    i = link.forward.impairment
    assert (i.rate_bps, i.delay_ns, i.jitter_ns, i.loss) == (250_000, 30_000_000, 5_000_000, 0.3)
    assert link.half_duplex
    (link,) = make_plan(parse("x.yaml", text("both: {profile: lte}"))).links
    assert (link.reverse.impairment.delay_ns, link.reverse.impairment.jitter_ns) == (20_000_000, 5_000_000)


def test_each_direction_gets_its_own_and_the_topology_wins() -> None:
    (link,) = make_plan(parse("x.yaml", text("both: {profile: dsl, delay: 5 ms}"))).links
    assert (link.forward.impairment.rate_bps, link.reverse.impairment.rate_bps) == (640_000, 6_144_000)
    assert link.forward.impairment.delay_ns == link.reverse.impairment.delay_ns == 5_000_000
    bursty = "gilbert_elliott: {good_to_bad: 1 %, bad_to_good: 10 %}"
    (link,) = make_plan(parse("x.yaml", text(f"both: {{profile: constrained, {bursty}}}"))).links
    assert link.forward.impairment.loss == 0 and link.forward.impairment.gemodel is not None


def test_a_parameter_chooses_the_network_and_nothing_else_changes() -> None:
    """Shows that a parameter can select the profile: ideal is full duplex without a rate, constrained half
    duplex at 250 kbit/s.
    """
    chosen = b"parameters: {network: {type: text, default: ideal}}\n" + text("both: {profile: '${network}'}")
    ideal, constrained = (
        make_plan(parse("x.yaml", chosen, {"network": name})).links[0] for name in ("ideal", "constrained")
    )
    assert not ideal.half_duplex and not ideal.forward.impairment.present
    assert constrained.half_duplex and constrained.forward.impairment == constrained.reverse.impairment
    assert constrained.forward.impairment.rate_bps == 250_000


def test_the_topology_has_the_last_word_on_duplex() -> None:
    def link(impaired: str) -> Link:
        return make_plan(parse("x.yaml", text(impaired))).links[0]

    assert not link("both: {profile: constrained}, duplex: full").half_duplex
    lossless = link("both: {profile: constrained, loss: 0 %}")
    assert lossless.half_duplex and lossless.forward.impairment.loss == 0


@pytest.mark.parametrize(("impaired", "rule"), [
    ("both: {profile: constrained}, nics: {a: eth1, b: eth2}", "write `duplex: full` (profile constrained"),
    ("forward: {profile: constrained}", "given different impairments; write `both:`, or write"),
    ("both: {profile: radio}", "shares a transmitter that has no rate"),
])  # fmt: skip
def test_half_duplex_of_a_profile_is_told_as_such(tmp_path: Path, impaired: str, rule: str) -> None:
    (tmp_path / "profiles").mkdir()
    radio = "title: t\nsource: s\nboth: {}\nlink: {duplex: {value: half, source: s}}\n"
    (tmp_path / "profiles" / "radio.yaml").write_text(radio)
    assert rule in refused(str(tmp_path / "x.yaml"), text(impaired))


def test_an_event_cannot_make_a_link_half_duplex() -> None:
    event = b"timeline: [{at: hold + 1 s, impair: wan, both: {profile: constrained}}]\n"
    said = refused("x.yaml", text("both: {delay: 1 ms}") + event)
    assert "timeline[0]: profile constrained is half duplex, and link wan is not" in said
    assert parse("x.yaml", text("both: {profile: constrained}") + event)
    one = b"timeline: [{at: hold + 1 s, impair: wan, forward: {rate: 1 Mbit/s}}]\n"
    assert "share one transmitter" in refused("x.yaml", text("both: {profile: constrained}") + one)


def refused(file: str, content: bytes) -> str:
    with pytest.raises(TopologyError) as caught:
        parse(file, content)
    return "\n".join(str(problem) for problem in caught.value.problems)


def test_a_name_that_does_not_exist_gives_the_nearest() -> None:
    said = refused("x.yaml", text("both: {profile: leoo}"))
    assert said.startswith('x.yaml:4: links.wan.both.profile: "leoo": is no profile; did you mean "leo"?')
    event = b"timeline: [{at: hold + 1 s, impair: wan, both: {profile: leoo}}]\n"
    assert "timeline[0].both.profile" in refused("x.yaml", text("both: {delay: 1 ms}") + event)


MTU = "link: {mtu: {value: 1280, source: measured}}\n"
OWN = "title: t\nsource: s\nboth: {delay: {value: 7 ms, source: measured here}}\n" + MTU


def test_ones_own_stands_beside_the_topology(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "lte.yaml").write_text(OWN.replace(MTU, ""))
    (tmp_path / "x.yaml").write_bytes(text("both: {profile: lte}"))
    (link,) = make_plan(load(tmp_path / "x.yaml")).links
    assert link.forward.impairment.delay_ns == 7_000_000


def test_a_profile_has_keys_of_its_link_too(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.yaml").write_text(OWN)
    wire = "name: w\nnodes: {a: {}, b: {}}\nlinks: {ab: {between: [a, b], both: {profile: mine}}}\n"
    (tmp_path / "x.yaml").write_text(wire)
    assert make_plan(load(tmp_path / "x.yaml")).nodes[0].interfaces[0].mtu == 1280


@pytest.mark.parametrize(("change", "rule"), [
    ("{value: 7 ms}", "has not a value and its source"),
    ("7 ms", "has not a value and its source"),
    ("{value: 7, source: here}", '"7" has no unit'),
])  # fmt: skip
def test_a_wrong_profile_says_its_own_line(tmp_path: Path, change: str, rule: str) -> None:
    (tmp_path / "profiles").mkdir()
    own = tmp_path / "profiles" / "mine.yaml"
    own.write_text(OWN.replace("{value: 7 ms, source: measured here}", change))
    said = refused(str(tmp_path / "x.yaml"), text("both: {profile: mine}"))
    assert rule.split('"')[-1].strip() in said
    assert "value" not in rule or f"{own}:3: both.delay" in said


ANYTHING = st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["title", "source", "both", "link", "forward", "x"]), ANYTHING))
def test_any_file_is_a_profile_or_a_told_mistake(data: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "profiles").mkdir()
        (place / "profiles" / "mine.yaml").write_text(json.dumps(data))
        try:
            assert profiles.find("mine", place).title
        except profiles.ProfileError as error:
            assert error.rule and error.remedy
