"""Tests that missing needs of a guest are found before anything is made, with real namespaces and simulated
facts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.kernel.uml import needs

PROJECT = Path(__file__).resolve().parents[2]


def test_nothing_is_missing_where_root_owns_mount():
    assert needs.missing_root() == []
    assert needs.missing_root(Path("/nonexistent/mount")) == []


@pytest.mark.parametrize("mapping", [(), ("--map-user=1000",)], ids=["nobody", "uid 1000"])
def test_a_user_namespace_without_root_is_refused_at_the_start(tmp_path, mapping):
    unshare = ["unshare", "--user", *mapping]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine grants no user namespaces")
    tmp_path.chmod(0o777)
    argv = [*unshare, sys.executable, "-m", "orchestrator.cli.main", "run", "topologies/pair.yaml"]
    done = subprocess.run(
        [*argv, "--kernel", "uml", "--results", str(tmp_path / "out")],
        cwd=PROJECT,
        env={**os.environ, "VNET_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "uml: needs root's files as root's (here /bin/mount belongs to uid" in done.stderr
    assert "unshare --map-root-user" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_processor_without_xsave_has_no_virtual_time():
    assert needs.missing_xsave("flags\t\t: fpu sse2 xsave avx\n") == []
    (missing,) = needs.missing_xsave("flags\t\t: fpu sse2 ssse3\n")
    assert missing.what == "XSAVE in the processor"
    assert "--time real" in missing.remedy
