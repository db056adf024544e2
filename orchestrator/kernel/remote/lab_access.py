"""Reads run files and connects to node sockets of a running lab, on this machine or another."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from orchestrator.kernel.remote.remote_lab import RemoteLab, read
from orchestrator.kernel.remote.ssh import Connection


def text(state_dir: Path, run_dir: Path, name: str) -> str:
    """Returns the present content of a file of the run directory; empty if it does not exist. Raises
    KernelError if the other machine does not answer.
    """
    if (remote_lab := read(state_dir)) is None:
        file = run_dir / name
        return file.read_text(errors="replace") if file.exists() else ""
    command = remote_lab.account.program(remote_lab.code, "text", remote_lab.home, name)
    return Connection.of_owner(remote_lab.machine, state_dir).run(command, what=name).decode(errors="replace")


def stream(state_dir: Path, name: str) -> socket.socket:
    """Returns a connection to a Unix socket of the state directory; raises OSError if no process listens."""
    if (remote_lab := read(state_dir)) is not None:
        return _through(remote_lab, state_dir, name)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.connect(str(state_dir / name))
    except OSError:
        made.close()
        raise
    return made


def _through(remote_lab: RemoteLab, state_dir: Path, name: str) -> socket.socket:
    """Connects to a socket on the other machine through the owner's ssh connection; raises FileNotFoundError
    if no process listens there.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        command = remote_lab.account.program(remote_lab.code, "stream", remote_lab.home, name)
        Connection.of_owner(remote_lab.machine, state_dir).popen(command, theirs, theirs, subprocess.DEVNULL)
    if ours.recv(1) != b"\n":
        ours.close()
        raise FileNotFoundError(2, "no process listens there", name)
    return ours
