"""Labs over hosts of their own kernel, namespaces and ssh servers: the suite of inside.py, in a lab kernel."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from far_machine import SSHD
from guest import in_guest

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.project import AGENT, PROJECT

HERE = Path(__file__).parent
SUITE_S = 1800.0
QUICK = "test_a_run_over_two_hosts or test_a_host_dies"  # the rest by hand: make test-hosts
missing = next(
    (
        what
        for there, what in (
            (SSHD.exists() and shutil.which("ssh") is not None, "an ssh server: images/packages.sh far"),
            (any(kernel.origin != "debian" for kernel in find_binaries()), "the lab kernel: make kernel"),
            (AGENT.exists(), "the agent: make setup"),
            (os.geteuid() == 0, "root, for sshd"),
        )
        if not there
    ),
    None,
)


@pytest.mark.uml
@pytest.mark.slow
@pytest.mark.skipif(missing is not None, reason=f"needs {missing}")
def test_labs_over_several_hosts(tmp_path: Path) -> None:
    chosen = ["-k", os.environ.get("VNET_TEST_HOSTS", QUICK)]
    words = [str(PROJECT), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE / "inside.py")]
    status, said = in_guest(HERE / "begin.py", tmp_path, [*words, *chosen], SUITE_S)
    assert status == 0, said
