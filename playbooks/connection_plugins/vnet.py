"""Ansible's connection to the nodes of a running lab, over the lab's control socket: no network is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase

# Finds these modules if Ansible runs outside of the checkout's environment; they need no other package.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.piped import CHUNK_BYTES, pieces, piped
from orchestrator.lab.state import processes, state_root

DOCUMENTATION = """
name: vnet
short_description: Nodes of a running vNET lab
description:
  - Runs commands on nodes of a lab and copies files to and from them over the lab's control socket.
  - Light nodes and virtual machines are reached the same way, under every kernel and without root.
author: the vNET authors
options:
  lab:
    description: Name of the running lab.
    vars:
      - name: vnet_lab
    env:
      - name: VNET_LAB
  node:
    description: Name of the node.
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
      - name: vnet_node
  state_dir:
    description: State directory of the lab; where not given, the place where C(vnet up) puts it.
    vars:
      - name: vnet_state_dir
  connect_timeout:
    description: Seconds within which the lab's process has to accept the connection.
    type: int
    default: 10
    vars:
      - name: ansible_vnet_timeout
"""


class Connection(ConnectionBase):  # type: ignore[misc]
    """One node; the socket is opened with the first command and serves all that follow."""

    transport = "vnet"
    has_pipelining = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._control: Control | None = None

    @property
    def _lab(self) -> str:
        lab = self.get_option("lab")
        if not lab:
            raise AnsibleError("connection vnet: no lab is named; use -i inventory/lab, or set vnet_lab")
        return str(lab)

    @property
    def _node(self) -> str:
        return str(self.get_option("node"))

    def _connect(self) -> Connection:
        if self._control is None:
            state_dir = Path(self.get_option("state_dir") or state_root() / self._lab)
            self._control = self._open(state_dir)
            self._connected = True
        return self

    def _open(self, state_dir: Path) -> Control:
        lab = self._lab
        if not (state_dir / "lab.json").exists():
            raise AnsibleConnectionFailure(
                f"lab {lab}: no such lab runs here ({state_dir}); `vnet ls` shows those that do, "
                "`vnet up FILE` starts one"
            )
        try:
            return Control.connect(
                state_dir / "control.sock", timeout_s=float(self.get_option("connect_timeout"))
            )
        except ControlError as error:
            alive = any(one.alive for one in processes(state_dir) if one.role == "lab")
            why = (
                "it is being made or torn down; wait for `vnet ls` to show it up"
                if alive
                else f"its process has died; `vnet down {lab}` removes what is left"
            )
            raise AnsibleConnectionFailure(f"lab {lab}: {error}; {why}") from error

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> Any:
        """Runs a command line of the shell; returns exit status, standard output and standard error."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        outputs = {"stdout": bytearray(), "stderr": bytearray()}
        status = self._run(
            ["/bin/sh", "-c", cmd],
            pieces(in_data or b""),
            lambda stream, data: outputs[stream].extend(data),
        )
        return status, bytes(outputs["stdout"]), bytes(outputs["stderr"])

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copies a file of this machine to the node, and compares the length there."""
        super().put_file(in_path, out_path)
        source = Path(in_path)
        if not source.is_file():
            raise AnsibleError(f"{in_path}: no such file on this machine; nothing was copied to {self._node}")
        said = {"stdout": bytearray(), "stderr": bytearray()}
        status = self._run(
            ["/bin/sh", "-c", 'cat >"$1" && wc -c <"$1"', "sh", out_path],
            _chunks(source),
            lambda stream, data: said[stream].extend(data),
        )
        size = source.stat().st_size
        if status != 0 or int(said["stdout"] or b"-1") != size:
            reason = said["stderr"].decode(errors="replace").strip() or f"{size} bytes did not all arrive"
            raise AnsibleError(f"node {self._node}: {out_path} cannot be written: {reason}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copies a file of the node to this machine."""
        super().fetch_file(in_path, out_path)
        errors = bytearray()
        with Path(out_path).open("wb") as target:

            def take(stream: str, data: bytes) -> None:
                if stream == "stdout":
                    target.write(data)
                else:
                    errors.extend(data)

            status = self._run(["cat", "--", in_path], [], take)
        if status != 0:
            raise AnsibleError(
                f"node {self._node}: {in_path} cannot be read: {errors.decode(errors='replace').strip()}"
            )

    def _run(self, argv: list[str], chunks: Iterable[bytes], output: Callable[[str, bytes], None]) -> int:
        self._connect()
        assert self._control is not None
        try:
            return piped(self._control, self._node, argv, chunks, output)
        except ControlError as error:
            self.close()
            raise AnsibleConnectionFailure(
                f"lab {self._lab}, node {self._node}: {error}; `vnet inspect {self._lab}` shows its nodes"
            ) from error

    def close(self) -> None:
        """Ends the connection; the node stays as it is."""
        if self._control is not None:
            self._control.close()
            self._control = None
        self._connected = False

    def reset(self) -> None:
        """Ends the connection; the next command begins a new one."""
        self.close()


def _chunks(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield data
