"""Tests the predicted frames/s and bit/s against the figures of a paper, and which messages count as offered
load.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.plan.build import make_plan
from orchestrator.topology import load
from orchestrator.topology.loading import parse
from reports.papers.industrial_ethernet_substation.arithmetic import variants

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "topologies" / "papers" / "substation-traffic.yaml"


def predicted(values: dict[str, str]) -> tuple[float, float]:
    """Returns frames/s and bit/s of the substation."""
    plan = make_plan(load(PAPER, values))
    found = {p.name: p.value for p in plan.predictions}
    return found["offered frames"], found["offered load"]


@pytest.mark.parametrize(
    ("values", "frames", "bits"),
    [
        ({}, 10 * 3 * (3 * 1440 + 346), 10 * 3 * (3 * 1440 + 346) * 736),
        ({"destinations": "1"}, 10 * (3 * 1440 + 346), 10 * (3 * 1440 + 346) * 736),
        (
            {"phases": "1", "message": "114 B"},
            10 * 3 * (1440 + 346),
            10 * 3 * (1440 * (96 + 60) * 8 + 346 * 736),
        ),
    ],
)
def test_the_arithmetic_of_a_substation(values: dict[str, str], frames: int, bits: int) -> None:
    assert predicted(values) == pytest.approx((frames, bits), rel=1e-9)
    row = f"| {frames:,} | {bits / 1e6:.1f} |"
    assert row in (ROOT / "docs" / "industrial-ethernet.md").read_text()


def test_the_report_multiplies_as_the_plan_does() -> None:
    given = {
        "whole": {},
        "multicast": {"destinations": "1"},
        "three_phases": {"phases": "1", "message": "114 B"},
    }
    for name, of in variants().items():
        assert predicted(given[name]) == pytest.approx((of.measurements + of.others, of.mbps * 1e6), rel=1e-9)


FILE = """\
name: offered
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: lan, software: {SOFTWARE}}
  b: {segment: lan, software: {listen: {udp: {listen: 9000}}, files: {bulk: {listen: 5201}}}}
run: {hold: 10 s}
"""


@pytest.mark.parametrize(
    ("software", "expected"),
    [
        # an answer is a frame too: 5 frames/s of 42 + 58 B, and as many of 42 + 158 B
        ("ask: {udp: {to: b, request: {size: 58 B, reply: 158 B, rate: 5 /s}}}", (10.0, 5 * 8 * 300.0)),
        ("copy: {bulk: {to: b}}", None),  # no schedule determines when it sends
    ],
)
def test_what_is_offered(software: str, expected: tuple[float, float] | None) -> None:
    plan = make_plan(parse("offered.yaml", FILE.replace("SOFTWARE", software).encode()))
    found = tuple(p.value for p in plan.predictions if p.scope == "senders")
    assert found == (pytest.approx(expected) if expected else ())
