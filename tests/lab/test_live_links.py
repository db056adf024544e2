"""Tests changes of a running lab's links through the pytest plugin: each is read back from the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_plans import AGENT

import vnet
from vnet.labs import Lab

PAIR = (
    vnet.Topology("pair")
    .segment("lan", "10.20.0.0/24")
    .node("left", "lan")
    .node("right", "lan")
    .link("left-access", "left", "lan", forward={"delay": "20 ms"})
)


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the labs' state below the test's own directory; the fake driver starts no agent."""
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    if not AGENT.exists():
        monkeypatch.setenv("VNET_AGENT", "/bin/true")


pytestmark = pytest.mark.vnet(PAIR, kernel="fake")


def test_link_changes_fields_and_sizes_the_queue(lab: Lab) -> None:
    access = lab.link("left-access")
    access.impair(delay="50 ms", loss="1 %", direction="reverse")
    link = lab.inspect()["links"]["left-access"]
    assert link["forward"]["requested"]["delay_ns"] == 20_000_000
    assert link["reverse"]["requested"]["delay_ns"] == link["reverse"]["read"]["delay_ns"] == 50_000_000
    assert link["reverse"]["requested"]["loss"] == 0.01
    one_way = link["reverse"]["requested"]["limit_packets"]
    slower = access.impair(rate="1 Mbit/s", direction="reverse")
    assert 0 < slower["reverse"]["limit_packets"] < one_way
    access.clear()
    assert lab.inspect()["links"]["left-access"]["forward"]["read"] is None


def test_link_down_and_up(lab: Lab) -> None:
    lab.link("left-access").down()
    assert lab.inspect()["links"]["left-access"]["down"] is True
    lab.link("left-access").up()
    assert lab.inspect()["links"]["left-access"]["down"] is False
