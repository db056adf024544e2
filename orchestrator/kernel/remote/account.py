"""Finds the account that runs a lab's processes on the other machine (root, by sudo if needed), and facts of
that machine.
"""

from __future__ import annotations

import platform
import re
import shlex
from dataclasses import dataclass

from orchestrator.kernel.protocol import KernelError, Missing
from orchestrator.kernel.remote.ssh import Connection

LEAST_PYTHON = (3, 11)  # the version in pyproject.toml
PREPARE = "playbooks/host.yml makes a server ready (docs/lab-staff.md)"
SUDO = "id -u; sudo -n true >/dev/null 2>&1 && echo sudo; true"
LOOK = (
    'echo "vnet:name=$(uname -n)"; echo "vnet:arch=$(uname -m)"; '
    'echo "vnet:cache=${XDG_CACHE_HOME:-$HOME/.cache}/vnet"; '
    'echo "vnet:state=${XDG_STATE_HOME:-$HOME/.local/state}/vnet"; '
    "for p in python3 /usr/bin/python3; do "
    'v=$($p -c "import sys; print(*sys.version_info[:2])" 2>/dev/null) && echo "vnet:python=$p $v"; '
    "done; true"
)
WORD = re.compile(r"^vnet:(\w+)=(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Account:
    """The account that runs a lab on the other machine, with facts of that machine.

    cache, state: the account's directories for vNET. python: the first Python that is new enough, or else the
    first one found; "" if there is none.
    """

    root: bool
    sudo: bool  # whether the account becomes root by sudo
    name: str  # the machine's own host name
    arch: str
    cache: str
    state: str
    python: str
    version: tuple[int, int]

    def shell(self, script: str) -> str:
        """Returns the ssh command line that runs a POSIX script as this account."""
        return ("sudo -n -H " if self.sudo else "") + f"sh -c {shlex.quote(script)}"

    def program(self, code: str, *arguments: str) -> str:
        """Returns the command line that runs orchestrator.run.remote on that machine, from the
        copied `code`.
        """
        return self.module(code, "orchestrator.run.remote", *arguments)

    def module(self, code: str, name: str, *arguments: str) -> str:
        """Returns the command line that runs the vNET module `name` on that machine, from the
        copied `code`.
        """
        argv = [self.python, "-s", "-m", name, *arguments]
        return self.shell(f"cd / && PYTHONPATH={shlex.quote(code)} exec {shlex.join(argv)}")

    def missing(self) -> list[Missing]:
        """Returns those needs of every lab that the machine does not meet: a new enough Python, the same
        processor architecture.
        """
        found = []
        wanted = ".".join(map(str, LEAST_PYTHON))
        if self.version < LEAST_PYTHON:
            there = f"it has {'.'.join(map(str, self.version))}" if self.python else "it has none"
            found.append(
                Missing(f"Python {wanted} or newer as python3", f"a lab is run by it; {there}", PREPARE)
            )
        if self.arch != platform.machine():
            reason = (
                f"the nodes' agent that is carried there is for {platform.machine()}, that is {self.arch}"
            )
            found.append(Missing("the same processor architecture", reason, "run vnet there"))
        return found


def account(connection: Connection) -> Account:
    """Finds the account by two short commands: root if possible, else the user who logs in. Raises
    KernelError if the login shell does not run commands.
    """
    root, sudo = _rights(connection)
    plain = Account(root, sudo, "", "", "", "", "", (0, 0))
    said = connection.run(plain.shell(LOOK), what="looking at the machine").decode(errors="replace")
    words = dict(WORD.findall(said))
    pythons = [_python(value) for name, value in WORD.findall(said) if name == "python"]
    new = [one for one in pythons if one[1] >= LEAST_PYTHON]
    python, version = (new or pythons or [("", (0, 0))])[0]
    try:
        return Account(
            root, sudo, words["name"], words["arch"], words["cache"], words["state"], python, version
        )
    except KeyError:
        raise KernelError(
            f"{connection.machine.url}: its shell answered {said.strip()[:200]!r}, not the expected text; "
            "the account needs a login shell that runs commands (a restricted one, or ForceCommand, does not)"
        ) from None


def _rights(connection: Connection) -> tuple[bool, bool]:
    """Returns whether the lab's processes run as root, and whether by sudo, which must not need a password.
    Does not use sudo if the user named the kernel `uml`, which needs no root.
    """
    said = connection.run(f"sh -c {shlex.quote(SUDO)}", what="looking at the account")
    words = said.decode(errors="replace").split()
    if "0" in words:
        return True, False
    sudo = "sudo" in words and connection.machine.kernel != "uml"  # the kernel uml needs no root
    return sudo, sudo


def _python(value: str) -> tuple[str, tuple[int, int]]:
    path, major, minor = value.rsplit(" ", 2)
    return path, (int(major), int(minor))
