"""Runs commands on nodes of a lab whose clock stands: in the node's network, files and processes, but with
the lab's own host name, so that their system calls take no virtual time.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections import deque
from pathlib import Path
from signal import SIGHUP, Signals
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab
from orchestrator.lab.relay import Peer

# Kinds of namespaces that a visitor enters, in this order. Not `uts`: who has a node's host name pays.
ENTERED = {"user": 0x10000000, "net": 0x40000000, "ipc": 0x08000000, "pid": 0x20000000, "mnt": 0x00020000}
CHUNK = 16384
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LC = ctypes.CDLL(None, use_errno=True)


class Visitors:
    """Has the interface of `Relay`: execute, forward, hang_up."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._running: dict[tuple[int, Any], Command] = {}

    def execute(self, peer: Peer, request: Message) -> None:
        """Starts a command on a node; raises LabError if its id is in use, the node unknown or the program
        cannot be started.
        """
        key = (id(peer), request.get("id"))
        if key in self._running:
            raise LabError(f"exec: id {request.get('id')} is still running; take another id")
        node = self._lab.node(str(request.get("node"))).name
        if (pid := self._lab.pids.get(node)) is None:
            raise LabError(f"exec: node {node}: has no process here")
        argv = [str(word) for word in request["argv"]]
        if not argv:
            raise LabError("exec: argv is empty; name a program")
        command = Command(self._lab, pid, argv, request, peer)
        command.on_end = lambda: self._running.pop(key, None)
        self._running[key] = command
        self._lab.entered.add(node)

    def forward(self, peer: Peer, request: Message) -> None:
        """Carries out `input`, `resize` or `signal` for a running command of the same client, and answers."""
        command = self._running.get((id(peer), request.get("target")))
        if command is None:
            raise LabError(f"{request['op']}: no running command has id {request.get('target')}")
        getattr(command, str(request["op"]))(request)
        peer.send({"id": request.get("id"), "ok": True})

    def hang_up(self, peer: Peer) -> None:
        """Sends SIGHUP to the commands of a client that has gone."""
        for key in [key for key in self._running if key[0] == id(peer)]:
            self._running.pop(key).kill(SIGHUP)

    def end(self) -> None:
        """Sends SIGHUP to all commands, because the lab goes on without visitors."""
        for command in self._running.values():
            command.kill(SIGHUP)


class Command:
    """One command of a visitor, with or without a terminal."""

    def __init__(self, lab: Lab, pid: int, argv: list[str], request: Message, peer: Peer) -> None:
        self._loop = lab.loop
        self._peer = peer
        self._id = request.get("id")
        self._waiting: deque[bytes] = deque()
        self._eof = False
        self.on_end: Any = lambda: None
        self._terminal = request.get("tty") is not None
        env = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **(request.get("env") or {})}
        entry = Entry(pid)
        try:
            self._start(argv, env, entry, request.get("tty"))
        except (OSError, subprocess.SubprocessError) as error:
            raise LabError(
                f'exec: "{argv[0]}" cannot be started: {error}; install it or correct the path'
            ) from error
        finally:
            entry.close()
        self._ended_fd = os.pidfd_open(self._process.pid)
        self._loop.watch(self._ended_fd, self._ended)

    def _start(self, argv: list[str], env: dict[str, str], entry: Entry, size: Any) -> None:
        ends: tuple[int | None, int | None, int | None] = (subprocess.PIPE,) * 3
        slave = None
        if self._terminal:
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, _window(size))
            ends = (slave, slave, slave)
        try:
            self._process = subprocess.Popen(
                argv, stdin=ends[0], stdout=ends[1], stderr=ends[2], env=env, start_new_session=True,
                preexec_fn=entry.enter, cwd=None,
            )  # fmt: skip
        finally:
            if slave is not None:
                os.close(slave)
        self._outputs: dict[int, str] = {}
        if self._terminal:
            self._outputs[master] = "stdout"
            self._input: int | None = master
        else:
            assert self._process.stdin and self._process.stdout and self._process.stderr
            self._outputs = {
                os.dup(self._process.stdout.fileno()): "stdout",
                os.dup(self._process.stderr.fileno()): "stderr",
            }
            self._input = os.dup(self._process.stdin.fileno())
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                pipe.close()
        os.set_blocking(self._input, False)
        for fd in self._outputs:
            self._loop.watch(fd, lambda fd=fd: self._readable(fd))  # type: ignore[misc]

    def input(self, request: Message) -> None:
        """Writes `data` (base64) to the command, or ends its input (`eof`)."""
        if request.get("data"):
            self._waiting.append(base64.b64decode(request["data"]))
        self._eof = self._eof or bool(request.get("eof"))
        if self._eof and self._terminal:
            self._waiting.append(b"\x04")
            self._eof = False
        self._push()

    def resize(self, request: Message) -> None:
        """Sets the size of the command's terminal; does nothing without one."""
        if self._terminal and self._input is not None:
            fcntl.ioctl(self._input, termios.TIOCSWINSZ, _window(request))

    def signal(self, request: Message) -> None:
        """Sends a signal, by number or name, to the command's processes; LabError for an unknown one."""
        asked = request.get("signal", "SIGTERM")
        try:
            self.kill(Signals(asked) if isinstance(asked, int) else Signals[str(asked)])
        except (ValueError, KeyError):
            raise LabError(f"signal: {asked}: no such signal") from None

    def kill(self, number: Signals) -> None:
        """Sends a signal to the command's processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _push(self) -> None:
        while self._waiting and self._input is not None:
            try:
                sent = os.write(self._input, self._waiting[0])
            except BlockingIOError:
                self._loop.at(self._loop.clock.now_ns(), self._push)  # with the next turn
                return
            except OSError:  # the command has closed its input
                self._waiting.clear()
                break
            if rest := self._waiting.popleft()[sent:]:
                self._waiting.appendleft(rest)
        if self._eof and self._input is not None and not self._terminal:
            os.close(self._input)
            self._input = None

    def _readable(self, fd: int) -> None:
        try:
            data = os.read(fd, CHUNK)
        except OSError:  # a terminal whose last user has closed it
            data = b""
        if not data:
            self._loop.unwatch(fd)
            del self._outputs[fd]
            if fd == self._input:
                self._input = None
            os.close(fd)
            return
        encoded = base64.b64encode(data).decode()
        stream = self._outputs[fd]
        self._peer.send({"id": self._id, "event": "output", "stream": stream, "data": encoded})

    def _ended(self) -> None:
        """Sends the remaining output and the status of the command."""
        self._loop.unwatch(self._ended_fd)
        os.close(self._ended_fd)
        status = self._process.wait()
        for fd in list(self._outputs):
            os.set_blocking(fd, False)
            while fd in self._outputs and _has_data(fd):
                self._readable(fd)
            if fd in self._outputs:  # a descendant keeps it open
                self._loop.unwatch(fd)
                del self._outputs[fd]
                if fd == self._input:
                    self._input = None
                os.close(fd)
        if self._input is not None:
            os.close(self._input)
            self._input = None
        self._peer.send({"id": self._id, "ok": True, "status": status if status >= 0 else 128 - status})
        self.on_end()


class Entry:
    """The namespaces and the root directory of a node's process, opened beforehand."""

    def __init__(self, pid: int) -> None:
        own, its = Path("/proc/self/ns"), Path(f"/proc/{pid}/ns")
        try:
            kinds = [kind for kind in ENTERED if (own / kind).readlink() != (its / kind).readlink()]
            self._spaces = {kind: os.open(its / kind, os.O_RDONLY) for kind in kinds}
            self._root = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise LabError(f"exec: the node's process {pid} cannot be entered: {error}") from error

    def enter(self) -> None:
        """Enters them in the child; a second fork makes a member of the node's processes. Raises OSError."""
        for kind, fd in self._spaces.items():
            if LC.setns(fd, ENTERED[kind]) != 0:
                raise OSError(ctypes.get_errno(), f"setns {kind}")
        os.fchdir(self._root)
        os.chroot(".")
        os.chdir("/")
        if "pid" in self._spaces and (child := os.fork()):
            os.closerange(3, 1024)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)

    def close(self) -> None:
        """Closes what was opened."""
        for fd in (*self._spaces.values(), self._root):
            os.close(fd)


def _window(size: Any) -> bytes:
    rows, columns = (int(size.get(key) or other) for key, other in (("rows", 24), ("cols", 80)))
    return struct.pack("HHHH", rows, columns, 0, 0)


def _has_data(fd: int) -> bool:
    import select

    return bool(select.select([fd], [], [], 0)[0])
