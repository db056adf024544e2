"""Connects Ansible to a simulated machine (processes in namespaces), by entering the namespaces of one of its
processes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: inside
short_description: Namespaces and root directory of a process
description: [Runs commands with nsenter in the mount, PID and UTS namespaces and the root of a process.]
author: the vNET authors
options:
  pid:
    description: The process.
    required: true
    vars:
      - name: inside_pid
"""


class Connection(ConnectionBase):  # type: ignore[misc]
    """The Ansible connection to the namespaces of one process."""

    transport = "inside"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def _argv(self, *argv: str) -> list[str]:
        pid = str(self.get_option("pid"))
        enter = ["nsenter", "--target", pid, "--mount", "--pid", "--uts", "--root", "--wd"]
        return [*enter, "env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *argv]

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> Any:
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        done = subprocess.run(self._argv("sh", "-c", cmd), input=in_data or b"", capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        super().put_file(in_path, out_path)
        self._copy(self._argv("sh", "-c", 'cat >"$1"', "sh", out_path), Path(in_path).read_bytes())

    def fetch_file(self, in_path: str, out_path: str) -> None:
        super().fetch_file(in_path, out_path)
        Path(out_path).write_bytes(self._copy(self._argv("cat", in_path)))

    def _copy(self, argv: list[str], data: bytes = b"") -> bytes:
        done = subprocess.run(argv, input=data, capture_output=True)
        if done.returncode != 0:
            raise AnsibleError(done.stderr.decode(errors="replace"))
        return done.stdout

    def close(self) -> None:
        self._connected = False
