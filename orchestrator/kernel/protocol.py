"""The interface of every lab kernel: says whether it can carry a plan, and runs the lab process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from contract.plan import Plan
from orchestrator.language.problem import Problem


class KernelError(RuntimeError):
    """A lab kernel failed; the text has place, cause and remedy."""


class NoKernel(KernelError):  # noqa: N818  # what is missing, not that it is an error, is the subject
    """No kernel can carry the plan (exit status 4). `problems`: what the file has wrong beside that."""

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text)
        self.problems = list(problems)


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
class Wish:
    """What is wanted of a kernel: its name or `auto`, the lab's time, and where the run will write (`out`).

    `bridged`: makes the plan whose links of virtual machines run through bridge VMs, for a kernel without
    netem. `agent`: finds the nodes' agent; None for a command that makes no lab. `carried`: images come to
    this machine later, and are not examined.
    """

    kernel: str = "auto"
    time: str = "real"
    out: Path = Path()
    bridged: Callable[[], Plan] | None = None
    agent: Callable[[], Path] | None = None
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """What a kernel says of a plan; it can carry the plan if nothing is missing and there is no problem.

    `plan`: as it would run there, with netem where this kernel has it. `missing`: needs that are not met.
    `problems`: what the plan costs beyond the limits there, and places in the file that it refuses. `why`:
    the reason to take this kernel, where it is another than that it is the first.
    """

    plan: Plan
    missing: Sequence[Missing] = ()
    problems: Sequence[Problem] = ()
    why: str = ""


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

    @classmethod
    def of(cls, plan: Plan, wish: Wish) -> Self:  # for those that are made for one machine
        """The kernel that the plan and the wish mean."""
        return cls()

    @classmethod
    def clean(cls, state_dir: Path) -> bool:
        """Takes away what a dead lab of this kernel left, beside what names on this machine tell.

        Returns whether that was all of the lab. Raises KernelError, OSError.
        """
        return False

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Whether it can carry `plan`, and how; makes nothing."""
        ...

    def describe(self) -> str:
        """Kind and release in a few words, for the user and the manifest."""
        ...

    def start(self, launch: Launch) -> LabHandle:
        """Start the lab process; KernelError where that fails at once."""
        ...
