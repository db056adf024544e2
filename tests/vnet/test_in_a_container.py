"""Tests the pytest plugin in a container that allows only what docs/pytest.md requires."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.kernel.virtual.kernel import VirtualKernel

PROJECT = Path(__file__).parents[2]
KERNEL = VirtualKernel().binary
NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork")
LABS = Path(__file__).with_name("labs_in_a_container.py")


@pytest.mark.uml
@pytest.mark.sweep  # the plugin's own tests run the same labs without a container
@pytest.mark.skipif(KERNEL is None, reason="the lab's own kernel is not built (make kernel)")
def test_labs_run_in_a_container_of_a_runtime_s_defaults(tmp_path: Path) -> None:
    assert KERNEL is not None
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine grants no user namespaces")
    container = [*NAMESPACES, "--kill-child", sys.executable, str(Path(__file__).with_name("container.py"))]
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "-c",
        "/dev/null",
        str(LABS),
    ]
    done = subprocess.run(
        [*container, str(tmp_path), *tests],
        env=os.environ | {"VNET_UML_KERNEL": str(KERNEL.path), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr
