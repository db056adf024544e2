"""Provides fixtures for tests with a dual-port NIC on a kernel with all features; they run only in the
machine of `make test-hil`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hil_machine import PROJECT, ports

INSIDE = "VNET_HIL" in os.environ
TRIAL = """
from orchestrator.images import locate
from orchestrator.lab.vm import accel
accel.INSTRUCTION_S = accel.BOOT_S = 400
print(accel.verdict(locate("builtin-nic")))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and not INSIDE:
            item.add_marker(pytest.mark.skip(reason="runs in the nested machine: make test-hil"))


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """Asserts after every test that each port has the same driver, name, state, addresses and routes as
    before.
    """
    if not INSIDE:
        yield
        return
    before = ports()
    yield
    assert ports() == before
    leases = Path("/run/vnet/.leases")
    assert not leases.exists() or not list(leases.iterdir())


@pytest.fixture(scope="session")
def kvm() -> None:
    """Asserts that KVM works, with the check that labs use but a longer timeout, because this machine can be
    very slow.
    """
    command = [sys.executable, "-c", TRIAL]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert "kvm=True" in done.stdout
