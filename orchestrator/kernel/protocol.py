"""The interface of every lab kernel: checks whether it supports a plan, and runs the lab process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from contract.plan import Plan


class KernelError(RuntimeError):
    """A lab kernel failed; the text has place, cause and remedy."""


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that a plan needs and a kernel lacks: its name, why the plan needs it, and the remedy.

    `other`: the name of a kernel that may have it.
    """

    what: str
    reason: str
    remedy: str
    other: str = ""

    def __str__(self) -> str:
        elsewhere = f"use --kernel {self.other}" if self.other else ""
        remedies = ", or ".join(one for one in (self.remedy, elsewhere) if one)
        return f"{self.what} ({self.reason})" + (f"; {remedies}" if remedies else "")


@dataclass(frozen=True, slots=True)
class Launch:
    """One lab to start: its plan, its directories for results and sockets, and its mode.

    `scenario`: run by itself; `keep`: stay afterwards and serve requests. Neither: serve until `down`.
    `snapshots`: where a campaign keeps booted machines from one lab to the next.
    `machine`: the URL by which a user elsewhere named this machine; empty for a lab of its own users.
    """

    plan: Plan
    run_dir: Path
    state_dir: Path
    agent: Path
    scenario: bool
    keep: bool = False
    snapshots: Path | None = None
    machine: str = ""

    @property
    def detached(self) -> bool:
        """Whether the lab outlives the command that started it."""
        return self.keep or not self.scenario


class LabHandle(Protocol):
    """A lab that was started."""

    @property
    def control(self) -> Path:
        """Unix socket that answers requests as docs/contracts.md says; appears when the lab serves."""
        ...

    def events(self) -> Iterator[dict[str, Any]]:
        """The lab's JSON lines, as they come, until its process has ended."""
        ...

    def wait(self, timeout_s: float | None = None) -> int:
        """Exit status of the lab process; TimeoutError after `timeout_s`."""
        ...

    def interrupt(self) -> None:
        """Requests the lab to tear down and keep its measurements; returns at once."""
        ...

    def kill(self) -> None:
        """Kills the lab without teardown; `vnet down` removes the rest."""
        ...


class LabKernel(Protocol):
    """A kernel that a lab may run in."""

    name: str
    why: str  # why it was taken, in words; stands in the manifest

    def can(self, plan: Plan) -> list[Missing]:
        """The needs of `plan` that this kernel lacks; empty if it supports the plan."""
        ...

    def describe(self) -> str:
        """Kind and release in a few words, for the user and the manifest."""
        ...

    def start(self, launch: Launch) -> LabHandle:
        """Start the lab process; KernelError where that fails at once."""
        ...
