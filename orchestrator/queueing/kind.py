"""Defines the interface of all kinds of queue that apply an impairment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from contract.plan import Impairment

Entry = dict[str, Any]  # of `tc -j qdisc`
Mismatch = tuple[str, object, object]  # field, requested value, value read back


class Queue(Protocol):
    """One kind of queue: its tc commands, tc's read-back, and the values that a link proof expects."""

    @property
    def kind(self) -> str: ...  # tc's name of the root qdisc
    def takes(
        self, before: Impairment, after: Impairment
    ) -> bool: ...  # whether a change in place is possible
    def lines(
        self, device: str, before: Impairment, after: Impairment
    ) -> list[str]: ...  # tc lines; `before` is all zero if nothing is set yet
    def read(self, entries: Sequence[Entry], like: Impairment) -> Impairment: ...  # from one device's entries
    def mismatches(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]: ...
    def sending_ns(
        self, wanted: Impairment, frame_bytes: int
    ) -> int: ...  # time that the rate adds to a frame without other traffic
    def at_once_bytes(self, wanted: Impairment) -> int: ...  # burst that passes above the rate
    def lone_bps(self, wanted: Impairment) -> int: ...  # rate of unmarked packets without other traffic
