"""Runs a part of `make chaos`: a command under a fault ends, gives the reason, leaves nothing behind and
loses nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import SCENES, TRACEBACK, Case, harmed, tried
from far import far_run
from faults import ENDS, FAILS, FULL, KILLS, POWER, Call, Cut, Disk, Fault, Memory, Short, Signal
from sweep import table

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="needs strace (images/packages.sh chaos)"
)
compiles = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="short.c: no gcc (images/packages.sh build)"
)
mounts = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yields a directory with a short path, because sockets, whose paths are limited, are below it."""
    with tempfile.TemporaryDirectory(prefix="vc") as name:
        yield Path(name)


@pytest.mark.parametrize(
    ("scene", "fault", "outcomes"),
    [
        ("run", Call("rename", FAILS, 1), "failed"),
        # The call that fails writes the manifest at the scenario's start, or binds a socket; the command must
        # fail as in the case above.
        pytest.param("run", Call("rename", FAILS, 4), "failed", marks=pytest.mark.sweep),
        pytest.param("run", Call("bind", FAILS, 1), "failed", marks=pytest.mark.sweep),
        ("run", Call("rename", KILLS, 1), "failed killed"),
        pytest.param("run", Disk(FULL, 40), "failed", marks=mounts),
        pytest.param("run", Disk(POWER, 1500), "done", marks=mounts),
        pytest.param("run", Memory(60), "killed", marks=mounts),
        pytest.param("real run", Short(1), "done", marks=compiles),
        ("campaign", Call("rename", KILLS, 6), "done failed killed"),
        # On a busy machine the fault falls into another part of the run; the case above always kills at the
        # same place.
        pytest.param("campaign", Signal(ENDS, 1200, 1), "done failed killed", marks=pytest.mark.sweep),
        ("report", Call("mkdir", FAILS, 1), "done failed"),
        ("real run", Call("sendto", FAILS, 3), "done failed"),
        ("real run", Call("mkdir", KILLS, 6), "failed killed"),  # the lab's process, when it makes its nodes
    ],
    ids=str,
)
def test_a_fault_is_told_and_leaves_nothing(scene: str, fault: Fault, outcomes: str, folder: Path) -> None:
    if why := SCENES[scene].why_not():
        pytest.skip(why)
    assert tried(SCENES[scene], fault, folder) in outcomes.split()


def test_a_cut_connection_is_told_and_leaves_nothing_there(folder: Path) -> None:
    with far_run(folder) as far:
        if why := far.why_not():
            pytest.skip(why)
        assert tried(far, Cut(25), folder) == "failed"


def test_what_a_case_has_started_is_found(folder: Path) -> None:
    case = Case(folder)
    status, said = case.vnet("ls", under=("sh", "-c", 'sleep 60 >/dev/null 2>&1 & exec "$@"', "sh"))
    assert status == 0, said
    (left,) = case.left()
    os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize(
    ("file", "harm"),
    [
        ("<frozen importlib._bootstrap>", False),
        ("/usr/lib/python3.11/encodings/__init__.py", False),
        ("/usr/lib/python3.11/threading.py", True),  # as the command ends
        ("/venv/lib/python3.11/site-packages/polars/__init__.py", True),
        ("/here/orchestrator/lab/loop.py", True),
    ],
)
def test_a_traceback_of_anything_but_pythons_own_start_is_harm(file: str, harm: bool) -> None:
    said = f"""{TRACEBACK}:
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "{file}", line 33, in <module>
OSError: [Errno 24] Too many open files"""
    assert bool(harmed(f"error: the lab process ended\n{said}\nafter it")) is harm
    assert harmed(f"{TRACEBACK}:\nOSError: without a file")
    site = f"Error processing line 1 of x.pth:\n{said}\nRemainder of file ignored"
    assert not harmed(site) and harmed(f"{site}\nvnet: internal error: x")


def test_outcomes_as_a_table() -> None:
    said = table({("run", "`write` fails"): Counter(done=2, BROKEN=1)})
    assert said.splitlines()[2] == "| run | `write` fails | 2 | 0 | 0 | 1 |"
