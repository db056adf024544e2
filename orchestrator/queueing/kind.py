"""Defines `Queue`, the interface of everything that applies an impairment to a device: netem, tbf
or a Stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from contract.plan import Impairment

Entry = dict[str, Any]  # one qdisc, class or filter as tc prints it
Mismatch = tuple[str, object, object]  # field, requested value, value read back


class Queue(Protocol):
    """Sets an impairment on a device by tc commands, compares it with tc's read-back, and computes the values
    that the link proof expects.
    """

    @property
    def kind(self) -> str: ...  # tc's name of the root qdisc
    def takes(
        self, before: Impairment, after: Impairment
    ) -> bool: ...  # whether the queue can be changed in place
    def lines(
        self, device: str, before: Impairment, after: Impairment
    ) -> list[str]: ...  # tc lines; `before` is all zero if nothing is set yet
    # Reads the entries of one device.
    def read(self, entries: Sequence[Entry], like: Impairment) -> Impairment: ...
    def mismatches(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]: ...
    def sending_ns(
        self, wanted: Impairment, frame_bytes: int
    ) -> int: ...  # time (ns) that the rate adds to a frame without other traffic
    def at_once_bytes(self, wanted: Impairment) -> int: ...  # bytes of a burst that passes above the rate
    # rate (bit/s) of unmarked packets without other traffic
    def lone_bps(self, wanted: Impairment) -> int: ...
