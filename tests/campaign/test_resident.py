"""Tests the resident process of a worker: it forks cells' processes, reports their ends, and ends with its
worker.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.campaign.engines.job import Job
from orchestrator.campaign.engines.resident import Child, Resident


@pytest.fixture(scope="module")
def resident() -> Iterator[Resident]:
    made = Resident()
    yield made
    made.close()


def forked(resident: Resident, place: Path) -> Child:
    with (place / "log").open("wb") as log:
        return resident.fork(log)


def test_a_cell_that_cannot_be_read_tells_why(resident: Resident, tmp_path: Path) -> None:
    child = forked(resident, tmp_path)
    child.stdin.write(b"no JSON\n")
    child.stdin.close()
    assert child.wait() == 1
    assert "JSONDecodeError" in (tmp_path / "log").read_text()
    assert child.stdout.read() == b""


def test_each_cell_is_a_session_of_its_own(resident: Resident, tmp_path: Path) -> None:
    children = [forked(resident, tmp_path) for _ in range(2)]
    assert len({child.pid for child in children}) == 2
    for child in children:
        child.stdin.write(b"\n")  # the cell has begun once it has read this line and failed
        child.stdin.close()
        assert child.wait() == 1 and child.poll() == 1


def test_a_signal_ends_a_cell_that_waits(resident: Resident, tmp_path: Path) -> None:
    child = forked(resident, tmp_path)
    assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.send_signal(signal.SIGKILL)  # no cell runs in the process any more


def test_a_plan_that_is_none_fails_its_cell_alone(resident: Resident, tmp_path: Path) -> None:
    told = {"plan": "{}", "request": {"file": "x.yaml"}, "directory": str(tmp_path), "run_dir": str(tmp_path)}
    state, error = Job(told, tmp_path, resident).follow(lambda event: None, lambda: None)
    assert state == "failed" and "its process ended with status 1" in str(error)
    assert (tmp_path / "cell.log").read_text().startswith("Traceback")


def test_without_the_resident_process_a_fork_is_refused(tmp_path: Path) -> None:
    gone = Resident()
    gone.close()
    with pytest.raises(OSError):
        forked(gone, tmp_path)
