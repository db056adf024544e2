"""Provides a launcher with real nodes, as for the agent's own tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from agent_launcher import BINARY, Launcher, leftovers


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Any]:
    """Yields a launcher with nodes a and b on one bridge; asserts afterwards that nothing of them is left."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built; cargo build --release -p vnet-agent")
    lab = f"frm{os.getpid()}"
    made = Launcher(tmp_path, lab)
    try:
        made.lab_up(["a", "b"])
        yield made
    finally:
        made.close()
    assert leftovers(lab) == []
