"""Tests that each lab in virtual time runs on a separate core, and that the processes that watch the lab from
outside are not bound to a core.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from virtual_place import SMALL, Place

from orchestrator.kernel.virtual.core import cores_for_a_lab
from orchestrator.lab.state import processes

CAMPAIGN = """\
name: long
seed: 7
campaign: {topologies: [long.yaml], repetitions: 2}
"""
ARGUMENTS = ("campaign", "run", "two.yaml", "--time", "virtual", "--jobs", "2", "--out", "camp")


def may_use(pid: int) -> set[str]:
    """Returns the kernel's list of the cores that a process may use; empty if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {line.split()[1] for line in lines if line.startswith("Cpus_allowed_list:")}


def guest(state_dir: Path) -> set[str]:
    """Returns the cores of the processes of a guest's kernel and its programs; empty before programs run."""
    kernel = [p.pid for p in processes(state_dir) if p.role == "uml"]
    if not kernel:
        return set()
    argv = ["ps", "-o", "pid=,comm=", "-s", str(kernel[0])]
    members = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    programs = members.count("uml-userspace")
    return set().union(*(may_use(int(pid)) for pid in members[::2])) if programs else set()


def test_jobs_run_on_cores_of_their_own(place: Place) -> None:
    with cores_for_a_lab() as one, cores_for_a_lab() as two:
        if len(one | two) < 2 or len(one) + len(two) > 2:
            pytest.skip("fewer than two cores that no other lab has taken")
    (place.cwd / "long.yaml").write_text(SMALL.replace("hold: 3 s", "hold: 20000 s"))
    (place.cwd / "two.yaml").write_text(CAMPAIGN)
    campaign = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.main", *ARGUMENTS],
        cwd=place.cwd,
        env=place.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        labs, found = list[Path](), list[set[str]]()
        while len(found) < 2 or not all(found):
            assert campaign.poll() is None and time.monotonic() < deadline, (labs, found)
            time.sleep(0.1)
            labs = sorted(place.cwd.glob("state/small-*"))
            found = [guest(lab) for lab in labs]
        assert all(len(cores) == 1 for cores in found)
        assert found[0] != found[1]
        assert set.union(*found) <= {str(core) for core in os.sched_getaffinity(0)}
        owners = [p.pid for lab in labs for p in processes(lab) if p.role == "lab"]
        assert [may_use(owner) for owner in owners] == [may_use(os.getpid())] * 2
    finally:
        campaign.send_signal(signal.SIGINT)
        _, said = campaign.communicate(timeout=60)
    assert campaign.returncode == 130, said.decode()
