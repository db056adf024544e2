"""Provides the fixtures of the Ansible tests: real `vnet` and `ansible-playbook` processes, with the labs'
state in a temporary directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_running import SITE_LAB, Controller

SITE = f"""\
name: {SITE_LAB}
segments:
  lan: {{subnet: 10.31.0.0/24}}
nodes:
  server: {{segment: lan}}
groups:
  smart-meter: {{count: 2, segment: lan}}
"""


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    """Yields a machine that runs Ansible; takes its labs down afterwards and asserts that none is left."""
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "empty.cfg").touch()
    # The path is short, because QEMU's sockets are deep below it and socket paths are limited to 107 bytes.
    state = Path(tempfile.mkdtemp(prefix="va"))
    state.chmod(0o711)  # lets QEMU's account enter the directory
    made = Controller(tmp_path, state)
    yield made
    for lab in made.labs():
        made.vnet("down", lab)
    assert not made.labs()
    shutil.rmtree(state)


@pytest.fixture
def bare_server(tmp_path: Path) -> Iterator[int]:
    """Yields the pid of a process in a private, writable copy of this machine's file system in which nothing
    else runs.
    """
    if os.geteuid() != 0:
        pytest.skip("a private copy of the file system needs root")
    if "overlay" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no overlay file system")
    script = Path(__file__).with_name("bare_server.sh")
    process = subprocess.Popen(
        ["unshare", "-m", "-u", "-p", "-f", "--kill-child", "sh", str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield int(child)
    finally:
        process.kill()
        process.wait()
