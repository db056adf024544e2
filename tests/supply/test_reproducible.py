"""Tests that two builds of the wheel have the same bytes, whatever the umask, the time and the time zone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not (ROOT / "target/release/vnet-agent").exists(), reason="not built (make setup)")
def test_a_wheel_built_twice_is_the_same() -> None:
    done = subprocess.run(
        [str(ROOT / "images/reproducible.sh"), "wheel"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("both builds are") == 2, "wheel and bill of materials"


@pytest.mark.sweep
@pytest.mark.skipif(not (ROOT / "target/release/vnet-agent").exists(), reason="not built (make setup)")
def test_a_debian_package_built_twice_is_the_same() -> None:
    done = subprocess.run(
        [str(ROOT / "images/reproducible.sh"), "deb"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("both builds are") == 4, "both files with their bills of materials"
