"""The stored record of a lab on another machine, which its owner here and a later removal need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contract import codec
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.account import Account
from orchestrator.language.uris import RemoteMachine

FILE = "remote-lab.json"  # in the lab's state directory here
LAUNCH = "launch.json"  # in `home` there
OWNER = "owner.json"  # in `home` there, once the owner there has begun


@dataclass(frozen=True, slots=True)
class RemoteLab:
    """One lab on another machine.

    home: its directory there, with its start file, its owner's process number and its run directory.
    """

    machine: RemoteMachine
    account: Account
    code: str  # directory on the other machine
    home: str
    lab: str
    run_dir: str
    state_dir: str
    agent: str  # here
    kernel: str  # host or uml: the kernel that carries the plan
    why: str
    scenario: bool
    keep: bool

    @property
    def state(self) -> str:
        """Name of the lab's state directory, the same on both machines."""
        return Path(self.state_dir).name

    @property
    def run_there(self) -> str:
        """Path of the run directory on the other machine; its name is the same as here."""
        return f"{self.home}/{Path(self.run_dir).name}"


@dataclass(frozen=True, slots=True)
class Start:
    """The start file (LAUNCH) for the owner on the other machine; the file also contains the plan."""

    kernel: str
    why: str
    machine: str  # the URL that the user stated
    run_dir: str
    state: str
    scenario: bool
    keep: bool


def read(state_dir: Path) -> RemoteLab | None:
    """Reads the record in a lab's state directory; None if there is none, as for a lab on this machine.
    Raises KernelError if the file is unreadable.
    """
    path = state_dir / FILE
    if not path.exists():
        return None
    try:
        return codec.from_json(RemoteLab, path.read_text())
    except (ValueError, KeyError, TypeError) as error:
        raise KernelError(
            f"{path}: cannot be read ({error}); it was written by another vNET: use that"
        ) from error
