"""Tests that a tap device that was given to libvirt's daemon, and so to the machine's own network namespace,
does not stay there after a lab fails.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.lab import cleanup
from orchestrator.lab.process import left_behind
from orchestrator.lab.vm.handover import lent_name, mark

LAB = f"lent{os.getpid()}"
NAME = lent_name(LAB, "guest")
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"
    ),
]


@pytest.fixture
def tap() -> Iterator[None]:
    subprocess.run(["ip", "tuntap", "add", "dev", NAME, "mode", "tap"], check=True)
    subprocess.run(["ip", "link", "set", "dev", NAME, "alias", mark(LAB)], check=True)
    yield
    subprocess.run(["ip", "link", "del", "dev", NAME], check=False, capture_output=True)


@pytest.mark.usefixtures("tap")
def test_a_lab_that_failed_while_it_was_lent_takes_it_away(tmp_path: Path) -> None:
    assert left_behind(LAB, "vm") == [f"tap {NAME}"], "the next lab of the name would fail on it"
    assert left_behind(LAB, "light") == [] == left_behind(LAB, "fake")
    assert cleanup.destroy(LAB, tmp_path).domains == [f"tap {NAME}"]
    assert left_behind(LAB, "vm") == []
