"""Defines the messages between client and workers: the task of a cell, its result, and a worker's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CAPTURES = "pcap"  # directory of a run's captures, which stay on the worker's machine


@dataclass(frozen=True)
class Task:
    """All data that a worker needs to run one cell; it reads no file of the campaign. sitting: identifies the
    command that runs the campaign. campaign: name of the campaign's directory on a worker that does not see
    `directory`. state: name of the lab's state directory. topology: content of the topology file. plan: the
    plan as JSON.
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


@dataclass(frozen=True)
class Result:
    """The result of a cell. state: the end state of its run, or `unfit` if the worker's machine cannot carry
    it. wall_s: seconds. attempt: distinguishes repeated executions. boot: identifies the machine (see Facts).
    run_dir: name of the run directory. packed: the run's files without captures as a gzipped tar, if the
    worker does not see the campaign's directory, else None; there: the path of these files on the worker's
    machine, empty if packed is None.
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
    """The facts that a worker reports about itself.

    boot: the boot id of its machine, equal for all workers on it. memory_bytes: available memory. kernels:
    names of the usable kernels. nics: names of the physical network cards.
    """

    machine: str
    boot: str
    versions: Mapping[str, str]
    inputs: Mapping[str, str]  # inputs of runs in virtual time; empty if the machine cannot run them
    cores: int
    memory_bytes: int
    kernels: tuple[str, ...]
    nics: tuple[str, ...]

    def __str__(self) -> str:
        nics = f", NICs {' '.join(self.nics)}" if self.nics else ""
        kernels = ", ".join(self.kernels) or "none"
        free = f"{self.memory_bytes / 1e9:.1f} GB free"
        return f"{self.machine}: {self.cores} cores, {free}, kernels: {kernels}{nics}"
