"""The record of a lab on another machine, for its owner here and for a later removal."""

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
    """One lab there. `home` is all that it has there: its launch, its owner's number, its run directory."""

    machine: RemoteMachine
    account: Account
    code: str  # directory there
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
        """Name of its state directory on either side."""
        return Path(self.state_dir).name

    @property
    def run_there(self) -> str:
        """Its run directory there, with the name that it has here."""
        return f"{self.home}/{Path(self.run_dir).name}"


@dataclass(frozen=True, slots=True)
class Start:
    """The start file (LAUNCH) for the owner there, beside the plan."""

    kernel: str
    why: str
    machine: str  # the URL by which the user named it
    run_dir: str
    state: str
    scenario: bool
    keep: bool


def read(state_dir: Path) -> RemoteLab | None:
    """The remote_lab of a lab of this user; None where it was not written yet."""
    path = state_dir / FILE
    if not path.exists():
        return None
    try:
        return codec.from_json(RemoteLab, path.read_text())
    except (ValueError, KeyError, TypeError) as error:
        raise KernelError(
            f"{path}: cannot be read ({error}); it was written by another vNET: use that"
        ) from error
