"""Tests with a dual-port NIC on a kernel that has everything: in the machine of `make test-hil` only."""

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
    """After every test each port has the driver, name, state, addresses and routes of before."""
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
    """KVM is tried as labs try it, with more patience: beside other work this machine is very slow."""
    command = [sys.executable, "-c", TRIAL]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert "kvm=True" in done.stdout
