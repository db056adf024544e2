"""Labs over hosts with control groups, namespaces and ssh servers of their own: the suite of inside.py.

In a lab kernel, where links are impaired and the network between hosts is slow; and on the machine's own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from far_machine import SSHD
from guest import PLACES

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.project import AGENT, PROJECT

HERE = Path(__file__).parent
MISSING = {
    "an ssh server: images/packages.sh far": not SSHD.exists() or shutil.which("ssh") is None,
    "the lab kernel: make kernel": all(kernel.origin == "debian" for kernel in find_binaries()),
    "the agent: make setup": not AGENT.exists(),
    "root": os.geteuid() != 0,
}
# Of each place what is quick; the rest by hand: make test-hosts
QUICK = {"kernel": "over_two_hosts", "namespaces": "part_that_is_killed or cannot_carry"}


@pytest.mark.uml
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(any(MISSING.values()), reason="; ".join(what for what, gone in MISSING.items() if gone))
@pytest.mark.parametrize("place", PLACES)
def test_labs_over_several_hosts(place: str, tmp_path: Path) -> None:
    chosen = ["-k", os.environ.get("VNET_TEST_HOSTS", QUICK[place])]
    words = [str(PROJECT), "-m", "pytest", "-x", "-p", "no:cacheprovider", str(HERE / "inside.py")]
    status, said = PLACES[place](HERE / "begin.py", tmp_path, [*words, *chosen])
    assert status == 0, said
