"""Tests events that limit the CPU of nodes: in the plan, and in the features that the machine
needs for them.
"""

from __future__ import annotations

import pytest

from contract.plan import Plan
from orchestrator.kernel.needs import needs_of
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: limits
segments: {lan: {subnet: 10.1.0.0/24}}
nodes: {left: {segment: lan}}
groups: {right: {count: 2, segment: lan}}
timeline:
  - {at: hold, limit: [left, right], cpu_limit: 0.1 cores}
  - {at: hold + 5 s, limit: "right[2]", cpu_limit: 300 MHz, label: faster}
run: {hold: 10 s}
"""


def planned() -> Plan:
    return make_plan(parse("limits.yaml", FILE.encode()))


def test_the_plan_says_who_and_how_much() -> None:
    first, second = planned().events
    assert (first.action, first.targets) == ("limit", ("left", "right1", "right2"))
    assert (first.args, first.label) == ({"cpu_limit_cores": 0.1}, "limit left, right to 0.1 cores")
    assert (second.targets, second.args, second.label) == (("right2",), {"cpu_limit_mhz": 300.0}, "faster")


def test_the_machine_needs_its_controller() -> None:
    needs = needs_of(planned())
    assert needs.controllers["cpu"] == "event limit left, right to 0.1 cores sets a CPU limit"


@pytest.mark.parametrize("events", [True, False])
def test_without_such_an_event_it_does_not(events: bool) -> None:
    start, end = FILE.index("timeline:"), FILE.index("run:")
    text = FILE if events else FILE[:start] + FILE[end:]
    found = needs_of(make_plan(parse("limits.yaml", text.encode()))).controllers
    assert ("cpu" in found) == events
