"""Runs the golden experiment on emulated processors: without AVX, and with AVX and AVX2."""

from __future__ import annotations

import os
import shutil

import other_cpu
import pytest


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.uml
@pytest.mark.timeout(2 * other_cpu.LIMIT_S)
@pytest.mark.skipif(os.geteuid() != 0, reason="the emulated machine reads all of this one: needs root")
@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="no QEMU (images/packages.sh vm)")
def test_processors_without_avx_and_with_it_give_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    status = other_cpu.main(["SandyBridge,-avx", "EPYC"])
    said = capsys.readouterr().out.splitlines()
    assert status == 0, said
    assert [" avx2," in line for line in said] == [False, True]
