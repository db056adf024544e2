"""What the lab process asks of agents in virtual machines (docs/contracts/vms.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

from orchestrator.lab.operations.measuring import CollectFrames, ListenForFrames, SendFrames
from orchestrator.lab.operations.nodes import Set
from orchestrator.lab.operations.operation import Operation
from orchestrator.lab.operations.programs import Exec, Input, Resize, Signal, Start, Stop


class FilePart(TypedDict):
    size: int | None  # of the whole file; None where there is none
    data: NotRequired[str | None]  # base64


@dataclass(frozen=True)
class Fetch(Operation[FilePart]):
    op = "fetch"
    path: str
    offset: int
    length: int


class Now(TypedDict):
    now_ns: int


@dataclass(frozen=True)
class ReadClock(Operation[Now]):
    op = "clock"


@dataclass(frozen=True)
class Resume(Operation[Now]):
    op = "resume"
    real_ns: int
    seed: str  # base64, 32 bytes


OfOneNode = Set | Start | Stop | Exec | ListenForFrames | SendFrames | CollectFrames
OfOneExec = Input | Resize | Signal
