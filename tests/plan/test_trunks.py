"""Tests trunks in the plan: tagged interfaces of a link, its paths, and mistakes in files."""

from __future__ import annotations

import pytest

from contract.plan import Carried, Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.paths import Paths
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: trunks
segments:
  one-a: {subnet: 10.1.0.0/24}
  one-b: {subnet: 10.1.0.0/24}
  two-a: {subnet: 10.2.0.0/24}
  two-b: {subnet: 10.2.0.0/24}
nodes:
  n1a: {segment: one-a}
  n1b: {segment: one-b}
  n2a: {segment: two-a}
  n2b: {segment: two-b}
links:
  wire: {between: [one-a, one-b], trunk: {20: [two-a, two-b]}, both: {delay: 5 ms, rate: 10 Mbit/s}}
run: {hold: 4 s}
"""

RUN = "run: {hold: 4 s}"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("trunks.yaml", text.encode()))


def test_a_pair_of_segments_has_a_tagged_port_at_each_end() -> None:
    plan = planned()
    (link,) = plan.links
    assert link.trunk == (Carried(20, "two-a", "two-b", "wire-a-20", "wire-b-20"),)
    assert link.joins == (("one-a", "one-b"), ("two-a", "two-b"))
    text = "".join(step.text for step in plan.steps)
    assert "link add link wire-a name wire-a-20 mtu 1500 type vlan id 20\n" in text
    assert "link set dev wire-b-20 master br-two-b up\n" in text


def test_both_pairs_take_the_same_link_and_do_not_meet() -> None:
    paths = Paths.of(planned())
    first, second = paths.between("n1a", "n1b"), paths.between("n2a", "n2b")
    assert first is not None and second is not None
    assert first.directions == second.directions and first.delay_ns() > 5_000_000
    assert paths.between("n1a", "n2b") is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("20: [two-a, two-b]", "0: [two-a, two-b]", "links.wire.trunk"),
        ("20: [two-a, two-b]", "20: [two-a]", "links.wire.trunk.20"),
        ("20: [two-a, two-b]", "20: [two-a, nowhere]", "nowhere"),
        ("20: [two-a, two-b]", "20: [two-a, two-a]", "joins a segment to itself"),
        ("20: [two-a, two-b]", "20: [two-a, one-b]", "is a segment of the link's frames"),
        ("subnet: 10.2.0.0/24}\nnodes", "subnet: 10.3.0.0/24}\nnodes", "10.3.0.0/24"),
        ("n2a: {segment: two-a}", "n2a: {segment: two-a, vlan: 7}", "a tag of the node's own on two-a"),
        ("between: [one-a, one-b], trunk", "between: [n1a, one-a], trunk", "of a link between two segments"),
        ("rate: 10 Mbit/s}}", "rate: 10 Mbit/s}, duplex: half}", "stands beside `duplex: half`"),
        ("n2a: {segment: two-a}", "n2a: {segment: two-a, kind: vm}", "is of labs of light nodes"),
        ("two-b: {subnet: 10.2.0.0/24}", "two-b: {subnet: 10.2.0.0/24, mtu: 900}", "has another MTU"),
        ("run: {hold: 4 s}", f"{RUN}\ntimeline: [{{at: hold, partition: one-a, for: 1 s}}]", "a trunk"),
    ],
)  # fmt: skip
def test_mistakes(old: str, new: str, said: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        planned(FILE.replace(old, new))
    assert said in str(refusal.value)
