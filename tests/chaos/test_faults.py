"""A slice of `make chaos`: faults of each kind in a run; it ends, says why, leaves nothing, loses nothing."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import FULL, Call, Case, Disk, Fault, one, table

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="needs strace (images/packages.sh chaos)"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: sockets are below it."""
    with tempfile.TemporaryDirectory(prefix="vc") as name:
        yield Path(name)


@pytest.mark.parametrize(
    ("fault", "outcomes"),
    [
        (Call("rename", "fails", 1), {"failed"}),
        (Call("rename", "fails", 4), {"failed"}),  # the manifest, when the scenario begins
        (Call("bind", "fails", 1), {"failed"}),
        (Call("rename", "kills its process", 1), {"failed", "killed"}),
        pytest.param(
            Disk(FULL, 40),
            {"failed"},
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root"),
        ),
    ],
    ids=lambda value: None if isinstance(value, set) else str(value),  # a set has no order
)
def test_a_fault_is_told_and_leaves_nothing(fault: Fault, outcomes: set[str], folder: Path) -> None:
    assert one(fault, folder) in outcomes


def test_what_a_case_has_started_is_found(folder: Path) -> None:
    case = Case(folder)
    status, said = case.vnet("ls", under=("sh", "-c", 'sleep 60 >/dev/null 2>&1 & exec "$@"', "sh"))
    assert status == 0, said
    (left,) = case.left()
    os.kill(left, signal.SIGKILL)


def test_outcomes_as_a_table() -> None:
    said = table({"`write` fails": Counter(done=2, BROKEN=1)})
    assert said.splitlines()[2] == "| `write` fails | 2 | 0 | 0 | 1 |"
