"""Requests to agents in [virtual machines](vms.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

from orchestrator.lab.operations.measuring import CollectFrames, ListenForFrames, SendFrames
from orchestrator.lab.operations.nodes import Disk, Set
from orchestrator.lab.operations.operation import Operation
from orchestrator.lab.operations.programs import Exec, Freeze, Input, Resize, Signal, Start, Stop


class FilePart(TypedDict):
    size: int | None  # size of the whole file now; null if there is no file
    data: NotRequired[str | None]  # base64


@dataclass(frozen=True)
class Fetch(Operation[FilePart]):
    """A part of a file of the machine, at most 48 KiB."""

    op = "fetch"
    path: str
    offset: int
    length: int


class Now(TypedDict):
    now_ns: int


@dataclass(frozen=True)
class ReadClock(Operation[Now]):
    """Reads the launcher's lab clock when the request is handled."""

    op = "clock"


@dataclass(frozen=True)
class Resume(Operation[Now]):
    """Sets clock and seed of a virtual machine that continues from saved memory.

    CLOCK_REALTIME is set, the seed is credited to the kernel's random pool, and its generator draws again.
    The launcher's lab clock is read again as long as there is no node.
    """

    op = "resume"
    real_ns: int
    seed: str  # base64, 32 bytes


OfOneNode = Set | Disk | Start | Stop | Freeze | Exec | ListenForFrames | SendFrames | CollectFrames
OfOneExec = Input | Resize | Signal
