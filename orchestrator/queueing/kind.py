"""Defines the interface of all kinds of queue that apply an impairment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from contract.plan import Impairment

Entry = dict[str, Any]  # of `tc -j qdisc`
Mismatch = tuple[str, object, object]  # field, asked, read


class Queue(Protocol):
    """One kind of queue: its tc commands, tc's read-back, and the values that a link proof expects."""

    @property
    def kind(self) -> str: ...  # of the root qdisc, as tc names it
    def takes(self, before: Impairment, after: Impairment) -> bool: ...  # whether a change leads there
    def lines(
        self, device: str, before: Impairment, after: Impairment
    ) -> list[str]: ...  # `before`: all zero, or set
    def read(self, entries: Sequence[Entry], like: Impairment) -> Impairment: ...  # of one device
    def mismatches(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]: ...
    def sending_ns(
        self, wanted: Impairment, frame_bytes: int
    ) -> int: ...  # that a lone frame waits for the rate
    def at_once_bytes(self, wanted: Impairment) -> int: ...  # that pass before the rate holds
    def lone_bps(self, wanted: Impairment) -> int: ...  # what unmarked packets get if they are alone
