"""Tests how long the owner process of a lab in virtual time waits for the lab to end."""

from __future__ import annotations

from orchestrator.kernel.virtual.kernel import latest_end_ns
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

SECOND = 1_000_000_000
LAB = """\
name: slow
segments: {left: {subnet: 10.1.0.0/24}, right: {subnet: 10.1.0.0/24}}
nodes: {a: {segment: left}, b: {segment: right}}
links: {wan: {between: [left, right], both: {delay: 5 ms}}}
PROOF
run: {hold: 10 s}
"""


def end_ns(proof: str) -> int:
    plan = make_plan(parse("slow.yaml", LAB.replace("PROOF", proof).encode()))
    return latest_end_ns(plan) - plan.clock_ns


def test_a_proof_has_the_time_that_the_file_allows_it() -> None:
    assert end_ns("proof: {at_most: 7200 s}") >= 2 * 7200 * SECOND + 10 * SECOND
    assert end_ns("proof: {at_most: 7200 s}") - end_ns("proof: {at_most: 60 s}") == 2 * 7140 * SECOND
    assert end_ns("") >= 2 * 1200 * SECOND
