"""The messages between client and worker for one cell: the task and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CAPTURES = "pcap"  # of a run directory; it stays where it was made


@dataclass(frozen=True)
class Task:
    """One cell, planned: a worker needs no file of the campaign.

    sitting: one command that runs the campaign; campaign: its directory's name on a worker that does not see
    `directory`. state: name of the lab's state directory. bridged: the plan for a kernel without netem, where
    that is another one.
    """

    cell: str
    number: int
    sitting: str
    campaign: str
    directory: str
    state: str
    request: Mapping[str, Any]
    topology: bytes
    plan: str
    bridged: str | None = None


@dataclass(frozen=True)
class Result:
    """How a cell ended. state: as of a run, or `unfit` where the worker's machine cannot carry it.

    attempt: distinguishes repeated executions. boot: identifies the machine (see Facts). run_dir: name of its
    directory. packed: its files without captures, where the worker does not see the campaign's directory;
    there: where it keeps them then.
    """

    state: str
    error: str | None
    wall_s: float
    machine: str
    boot: str
    attempt: str = ""
    run_dir: str = ""
    packed: bytes | None = None
    there: str = ""


@dataclass(frozen=True)
class Facts:
    """The facts that a worker reports about itself. boot: equal for all workers on one machine."""

    machine: str
    boot: str
    versions: Mapping[str, str]
    inputs: Mapping[str, str]  # of runs in virtual time
    cores: int
    memory_bytes: int
    kernels: tuple[str, ...]
    nics: tuple[str, ...]

    def __str__(self) -> str:
        nics = f", NICs {' '.join(self.nics)}" if self.nics else ""
        kernels = ", ".join(self.kernels) or "none"
        free = f"{self.memory_bytes / 1e9:.1f} GB free"
        return f"{self.machine}: {self.cores} cores, {free}, kernels: {kernels}{nics}"
