"""Simulates another machine by an sshd on the loopback, whose sessions have a home of their own.

It is this machine with other directories, so everything in its home, state and cache came over ssh.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from orchestrator.kernel.uml.binaries import find_binaries

SSHD = Path("/usr/sbin/sshd")
# sshd, started by root, needs this directory, which its package makes at every boot
PRIVILEGES = Path("/run/sshd")
CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {place}/host
AuthorizedKeysFile {place}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 50
SetEnv {env}
"""
CLIENT = """\
Host *
  IdentityFile {place}/{key}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {place}/{known}
  GlobalKnownHostsFile /dev/null
"""


class FarMachine:
    """The simulated machine: `place` has all its files, `more` further environment variables of
    its sessions.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = place / "home"
        self.state = place / "state"
        self.port = free_port()
        self.more: dict[str, str] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self._made = False
        self.home.mkdir()
        for name in ("host", "mine", "another", "another-host"):
            key(place / name)
        shutil.copy(place / "mine.pub", place / "authorized")
        self.know("known", "host")
        self.know("wrong", "another-host")
        (place / "empty").touch()

    @property
    def url(self) -> str:
        return f"ssh://127.0.0.1:{self.port}"

    def know(self, name: str, host: str) -> None:
        """Writes a file of known hosts that names `host` as this machine's key."""
        public = (self.place / f"{host}.pub").read_text()
        (self.place / name).write_text(f"[127.0.0.1]:{self.port} {public}")

    def ssh(self, key: str = "mine", known: str = "known") -> dict[str, str]:
        """Returns the environment of a user who has that key and that file of known hosts."""
        config = self.place / f"{key}-{known}.config"
        config.write_text(CLIENT.format(place=self.place, key=key, known=known))
        return {"VNET_SSH": f"ssh -F {config}"}

    def start(self) -> None:
        """Starts the ssh server."""
        if os.geteuid() == 0 and not PRIVILEGES.exists():
            PRIVILEGES.mkdir(mode=0o755)
            self._made = True
        kernels = find_binaries()
        env = {"HOME": self.home, "XDG_CACHE_HOME": self.place / "cache", "VNET_STATE_DIR": self.state}
        env |= {"XDG_STATE_HOME": self.place / "kept"}
        env |= {"VNET_UML_KERNEL": kernels[0].path} if kernels else {}
        text = " ".join(f"{name}={value}" for name, value in (env | self.more).items())
        config = self.place / "sshd_config"
        config.write_text(CONFIG.format(port=self.port, place=self.place, env=text))
        with (self.place / "sshd.log").open("ab") as log:
            self._server = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=log)
        deadline = time.monotonic() + 10
        while not listens(self.port):
            assert self._server.poll() is None, (self.place / "sshd.log").read_text()
            assert time.monotonic() < deadline, "sshd does not listen"
            time.sleep(0.02)

    def stop(self) -> None:
        """Stops the ssh server; open sessions continue."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            self._server = None
        if self._made:
            PRIVILEGES.rmdir()
            self._made = False

    def left(self) -> list[str]:
        """Returns all state and run directories of labs that are left on the machine."""
        far = self.place / "kept" / "vnet" / "far"
        return [str(path) for top in (self.state, far) if top.is_dir() for path in top.iterdir()]


def key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
