"""One ssh connection to another machine for all commands, with explanations of ssh's errors.

It is plain OpenSSH with the user's own configuration, keys and known hosts; VNET_SSH replaces the command
`ssh` (and its options). ssh checks host keys as that configuration says, and never asks the user.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Self

from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.refusals import explained
from orchestrator.language.uris import RemoteMachine

SOCKET_PATH_MAX = 90  # characters; sun_path holds 107, and ssh adds 17 while it makes the socket
CONNECT_S = 20  # s until the key exchange has ended
OPEN_S = 60.0  # s until the connection takes commands
CLOSE_S = 5.0  # s for ssh to close the connection over a network that may be down
GONE_S = 1.0  # s from the end of a command over the connection to the end of its process
POLL_S = 0.02
LOST = 255  # ssh's exit status if ssh itself failed, and not the command
PR_SET_PDEATHSIG = 1


class Connection:
    """An ssh connection, whose control socket is in `directory`; as a context manager, it is open inside the
    block.
    """

    def __init__(self, machine: RemoteMachine, directory: Path) -> None:
        self.machine = machine
        self._socket = directory / "ssh"
        self._log = directory / "ssh.log"
        self._master: subprocess.Popen[bytes] | None = None

    @classmethod
    def of_owner(cls, machine: RemoteMachine, directory: Path) -> Connection:
        """Returns an object that uses the open connection of another process, and does not close it."""
        return cls(machine, directory)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> int:
        """Connects and returns the process number of ssh. Raises KernelError with ssh's error and its
        meaning.
        """
        if len(str(self._socket)) > SOCKET_PATH_MAX:
            raise KernelError(
                f"{self._socket}: longer than the name of ssh's control socket may be; set VNET_STATE_DIR "
                "(or TMPDIR) to a shorter path"
            )
        self._socket.unlink(missing_ok=True)
        options = ["-N", "-o", "ControlMaster=yes", "-o", "ServerAliveInterval=15"]
        with self._log.open("wb") as log:
            self._master = self._start([*options, *self._target()], None, subprocess.DEVNULL, log)
        deadline = time.monotonic() + OPEN_S
        while not self._socket.exists():
            if self._master.poll() is not None:
                raise KernelError(explained(self.machine, self._said()))
            if time.monotonic() > deadline:
                self.close()
                raise KernelError(explained(self.machine, f"no connection within {OPEN_S:.0f} s"))
            time.sleep(POLL_S)
        return self._master.pid

    def close(self) -> None:
        """Ends the connection; commands that run over it lose their input and output."""
        if self._master is not None:
            self._master.terminate()
            try:
                self._master.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                self._master.kill()
                self._master.wait()
            self._master = None

    def popen(self, command: str, stdin: Any, stdout: Any, stderr: Any) -> subprocess.Popen[bytes]:
        """Starts a command in the other machine's shell over the open connection; ssh fails without one."""
        # Without the connection, ssh would make a separate one, which this object does not control.
        through = ["-o", "ControlMaster=no", "-o", "ProxyCommand=false"]
        return self._start([*through, *self._target(), command], stdin, stdout, stderr)

    def run(
        self,
        command: str,
        write: Callable[[IO[bytes]], object] = lambda _: None,
        timeout_s: float | None = 60.0,
        what: str = "",
    ) -> bytes:
        """Runs a command, whose input `write` writes, and returns its output. Raises KernelError with the
        command's error text, under the name `what`, if it fails or takes longer than `timeout_s` (None: no
        limit).
        """
        process = self.popen(command, subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
        assert process.stdin is not None
        try:
            # the command has ended; its error output has the reason
            with contextlib.suppress(BrokenPipeError):
                write(process.stdin)
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            process.kill()
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                text = f"{what or command}: no answer within {timeout_s:g} s"
                raise KernelError(f"{self.machine.url}: {text}") from None
            raise
        words = " ".join(errors.decode(errors="replace").split())
        if process.returncode == LOST and (lost := self.lost(words)):
            raise KernelError(lost)
        if process.returncode:
            raise KernelError(
                f"{self.machine.url}: {what or command}: {words or f'exit status {process.returncode}'}"
            )
        return output

    def lost(self, words: str = "") -> str | None:
        """Returns the reason why the connection is lost. Returns None if this object opened the connection
        and ssh still runs after GONE_S. words: ssh's error text of a command.
        """
        if self._master is not None:
            try:
                self._master.wait(GONE_S)
            except subprocess.TimeoutExpired:
                return None
        return explained(self.machine, f"the connection was lost: {self._said()} {words}".strip(" :"))

    def _said(self) -> str:
        return self._log.read_text(errors="replace").strip() if self._log.exists() else ""

    def _target(self) -> list[str]:
        control = ["-o", f"ControlPath={str(self._socket).replace('%', '%%')}", "-o", "ControlPersist=no"]
        return [*control, *target(self.machine)]

    def _start(
        self, arguments: Sequence[str], stdin: Any, stdout: Any, stderr: Any
    ) -> subprocess.Popen[bytes]:
        program = client()
        prctl = ctypes.CDLL(None).prctl
        try:
            return subprocess.Popen(
                [*program, *arguments],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,  # so that Ctrl-C interrupts the lab, not ssh
                # The signal ends ssh when this process dies, so that the other side reads the end of its
                # input and tears the lab down.
                preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
            )
        except OSError as error:
            raise KernelError(
                f"{program[0]}: {error.strerror}; apt-get install openssh-client, or correct VNET_SSH"
            ) from error


def client() -> list[str]:
    """Returns the command `ssh` as words, or that of VNET_SSH."""
    return shlex.split(os.environ.get("VNET_SSH", "")) or ["ssh"]


def target(machine: RemoteMachine) -> list[str]:
    """Returns the arguments of ssh that name a machine, with its user, port and keys."""
    options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-T", "-a", "-x"]
    options += ["-o", "ClearAllForwardings=yes"]
    if machine.keyfile:
        options += ["-i", machine.keyfile]
    if machine.known_hosts:
        options += ["-o", f"UserKnownHostsFile={machine.known_hosts}"]
    options += ["-l", machine.user] if machine.user else []
    options += ["-p", str(machine.port)] if machine.port else []
    return [*options, "--", machine.host]


def direct(machine: RemoteMachine, command: str) -> list[str]:
    """Returns a command line that runs `command` over a separate connection, for processes that outlive this
    one.
    """
    alone = ["-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "ServerAliveInterval=15"]
    return [*client(), *alone, *target(machine), command]
