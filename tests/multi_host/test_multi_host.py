"""Runs the tests of inside.py: labs over hosts with control groups, namespaces and ssh servers of their own.

They run in a lab kernel, with impaired links and a slow network between the hosts; on the machine's own
kernel; and, by hand, over hosts with a kernel each. Virtual machines over hosts (inside_vm.py) run by hand,
too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from far_machine import SSHD
from guest import PLACES
from lab_running import vm_missing

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.project import AGENT, PROJECT

HERE = Path(__file__).parent
MISSING = {
    "an ssh server: images/packages.sh far": not SSHD.exists() or shutil.which("ssh") is None,
    "the lab kernel: make kernel": all(kernel.origin == "debian" for kernel in find_binaries()),
    "the agent: make setup": not AGENT.exists(),
    "root": os.geteuid() != 0,
}
# The quick tests of each place; the others are run by hand: make test-hosts.
QUICK = {"kernel": "over_two_hosts", "namespaces": "part_that_is_killed or cannot_carry or doctor"}
ASKED = "VNET_TEST_HOSTS"  # names the tests to run instead, in the syntax of pytest's -k

pytestmark = [
    pytest.mark.uml,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(
        any(MISSING.values()), reason="; ".join(what for what, gone in MISSING.items() if gone)
    ),
]
by_hand = pytest.mark.skipif(ASKED not in os.environ, reason="takes minutes: make test-hosts")


def passes(place: str, suite: str, chosen: str, directory: Path) -> None:
    words = [str(PROJECT), "-m", "pytest", "-x", "-p", "no:cacheprovider", str(HERE / suite), "-k", chosen]
    status, said = PLACES[place](HERE / "begin.py", directory, words)
    assert status == 0, said


@pytest.mark.parametrize("place", QUICK)
def test_labs_over_several_hosts(place: str, tmp_path: Path) -> None:
    passes(place, "inside.py", os.environ.get(ASKED, QUICK[place]), tmp_path)


@by_hand
def test_labs_over_hosts_with_kernels_of_their_own(tmp_path: Path) -> None:
    passes("machines", "inside.py", os.environ[ASKED], tmp_path)


@by_hand
@pytest.mark.skipif(vm_missing() is not None, reason=str(vm_missing()))
def test_virtual_machines_over_several_hosts(tmp_path: Path) -> None:
    passes("namespaces", "inside_vm.py", os.environ[ASKED], tmp_path)
