"""Gives each test a launcher of its own, and checks that it leaves no process, namespace or file behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_launcher import BINARY, Launcher, leftovers


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built; cargo build --release -p vnet-agent")
    if shutil.which("ip") is None:
        pytest.skip("iproute2 is not installed")
    lab = f"agt{os.getpid()}"
    made = Launcher(tmp_path, lab)
    yield made
    made.close()
    assert leftovers(lab) == []
    assert not (tmp_path / "nodes").exists()
