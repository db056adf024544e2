"""The interface of every lab kernel: examine whether it can carry a plan, and start the lab process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from contract.plan import Plan
from orchestrator.language.problem import Problem


class KernelError(RuntimeError):
    """Raised if a lab kernel failed; the text contains place, cause and remedy."""


class NoKernel(KernelError):  # noqa: N818  # what is missing, not that it is an error, is the subject
    """Raised if no kernel can carry the plan (exit status 4). problems: the other faults of the topology
    file.
    """

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text)
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that a plan needs and a kernel lacks: its name, why the plan needs it, and the remedy.

    other: the name of another kernel that may have it.
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
    """The user's request for a kernel: its name or `auto`, the lab's time, and the directory that the run
    writes to (`out`).

    bridged: moves the netem of a plan into bridge VMs, for a kernel without netem. agent: finds the nodes'
    agent; None for a command that starts no lab. carried: images are copied to this machine later, so a
    kernel does not check for them.
    """

    kernel: str = "auto"
    time: str = "real"
    out: Path = Path()
    bridged: Callable[[Plan], Plan] | None = None
    agent: Callable[[], Path] | None = None
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """A kernel's answer to a plan; the kernel can carry the plan if nothing is missing and there is no
    problem.

    plan: as it would run there, with netem where this kernel has it. missing: needs that are not met.
    problems: limits that the plan exceeds there, and values of the file that the kernel refuses. why: the
    reason to choose this kernel; "" if its place in the order of preference is the reason.
    """

    plan: Plan
    missing: Sequence[Missing] = ()
    problems: Sequence[Problem] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """One lab to start: its plan, its directories for results and sockets, and its mode.

    scenario: the lab runs its scenario at once; keep: it stays up afterwards and serves requests. Without
    scenario, it serves until `vnet down`. snapshots: directory where a campaign keeps booted machines from
    one lab to the next. machine: the URL by which a user on another machine named this one; empty for a user
    of this one.
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
        """Unix socket that answers requests (docs/contracts.md); it exists once the lab serves."""
        ...

    def events(self) -> Iterator[dict[str, Any]]:
        """Yields the lab's JSON lines as they arrive, until its process has ended."""
        ...

    def wait(self, timeout_s: float | None = None) -> int:
        """Returns the exit status of the lab process; raises TimeoutError after `timeout_s`."""
        ...

    def interrupt(self) -> None:
        """Requests the lab to tear down and keep its measurements; returns at once."""
        ...

    def kill(self) -> None:
        """Kills the lab without teardown; `vnet down` removes the rest."""
        ...


class LabKernel(Protocol):
    """A kernel that can run labs."""

    name: str
    why: str  # the reason for choosing the kernel, for the user and the manifest
    described: str  # kind and release in a few words, for the user and the manifest

    @classmethod
    def of(cls, plan: Plan, wish: Wish) -> Self:  # overridden by kernels that are made for one machine
        """Returns the kernel that the plan and the wish name."""
        return cls()

    @classmethod
    def clean(cls, state_dir: Path) -> bool:
        """Removes what a dead lab of this kernel left on this machine, apart from things with names (links,
        namespaces).

        Returns whether nothing else of the lab remains. Raises KernelError or OSError.
        """
        return False

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns whether the kernel can carry `plan`, and how; creates nothing."""
        ...

    def start(self, launch: Launch) -> LabHandle:
        """Starts the lab process and returns its handle; raises KernelError if that fails at once."""
        ...
