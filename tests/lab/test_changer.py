"""Tests the permanent `tc` process: the kernel has the settings that it makes, its errors are raised, and it
ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from contract.plan import Impairment, Step
from orchestrator import queueing
from orchestrator.lab import tools
from orchestrator.lab.changer import Changers
from orchestrator.lab.errors import LabError
from orchestrator.queueing import fifo

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("tc") is None, reason="needs root and iproute2"
)


def rated(rate_bps: int) -> Impairment:
    return Impairment(rate_bps=rate_bps, limit_packets=1000, queue=fifo.of_length(70), backpressure=True)


@pytest.fixture
def netns() -> Iterator[str]:
    """Yields a namespace with a veth pair without qdiscs."""
    name = f"vnet-test-changer-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "add", "wa", "type", "veth", "peer", "name", "wb"], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_change_is_what_the_namespace_then_has(netns: str) -> None:
    changers = Changers()
    try:
        before = Impairment()
        for rate in (1_000_000, 2_500_000, 64_000):
            text = queueing.change_text("wa", before, rated(rate))
            entries = changers.change(Step("tc", netns, text, "test"), "wa")
            assert queueing.mismatches(rated(rate), entries, "wa") == []
            assert queueing.mismatches(rated(rate), tools.qdiscs(netns), "wa") == []
            assert queueing.mismatches(rated(rate + 100_000), entries, "wa") != []
            before = rated(rate)
    finally:
        changers.close()


def test_what_tc_refuses_is_told_with_its_lines(netns: str) -> None:
    changers = Changers()
    with pytest.raises(LabError) as caught:
        changers.change(Step("tc", netns, "class replace dev wa parent 9: nonsense\n", "a test"), "wa")
    assert netns in str(caught.value) and "a test" in str(caught.value) and "nonsense" in str(caught.value)
    entries = changers.change(Step("tc", netns, queueing.set_text("wa", rated(10**6)), "again"), "wa")
    assert queueing.mismatches(rated(10**6), entries, "wa") == [], "the next one begins anew"
    changers.close()
