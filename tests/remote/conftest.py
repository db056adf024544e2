"""Provides the command line of tests/cli and the daemon of tests/vm for tests with another machine."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("cli", "vm", "lab")]

from command_line import CommandLine  # noqa: E402
from far_machine import SSHD, FarMachine  # noqa: E402


@pytest.fixture
def far() -> Iterator[FarMachine]:
    """Yields another machine: a home, a state directory and an ssh server of its own."""
    if not SSHD.exists() or shutil.which("ssh") is None:
        pytest.skip("needs an ssh server to start and the client: images/packages.sh far")
    place = Path(tempfile.mkdtemp(prefix="vf"))  # a short path, because sockets are below it
    place.chmod(0o711)  # lets QEMU's account enter the directory
    machine = FarMachine(place)
    try:
        machine.start()
        yield machine
        assert machine.left() == [], "something of a lab is left there"
    finally:
        machine.stop()
        shutil.rmtree(place)


@pytest.fixture
def vnet(tmp_path: Path, far: FarMachine) -> Iterator[CommandLine]:
    """Yields a command line that can reach the other machine; asserts afterwards that nothing of its labs is
    left here.
    """
    line = CommandLine(tmp_path, far.place / "near", far.ssh())
    yield line
    for lab in line.labs():
        line("down", lab)
    assert not line.labs()
