"""Defines `Room`, the interface of the queues that a topology can name (prio, htb, red ...), and `Place`, the
place of a qdisc on a device.

A direction with a queue is a stack: netem (absent with `backpressure` alone), then the qdisc that limits the
rate, then the queue. The delay comes first: netem below the queue would take out all packets at once and
leave none to give priority to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from contract.plan import Band, Impairment

from .kind import Entry, Mismatch

DELAY, RATE, QUEUE, LEAF = "1:", "2:", "3:", 0x10  # handles; LEAF is that of the first band's own queue


@dataclass(frozen=True, slots=True)
class Part:
    """A queue with counters of its own: a qdisc, or one tin (priority class) of CAKE."""

    name: str
    handle: str  # "10:"
    tin: int | None = None

    @property
    def number(self) -> int:
        """Returns the handle as the kernel stores it: the major number in the upper 16 bits."""
        return int(self.handle.rstrip(":"), 16) << 16


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a qdisc on a device: the device and the parent."""

    device: str
    parent: str  # "root", or "parent 1:1"

    def qdisc(self, handle: str, words: str) -> str:
        """Returns a line for `tc -batch` that sets a qdisc at this place."""
        return f"qdisc replace dev {self.device} {self.parent} handle {handle} {words}"

    def below(self, handle: str, minor: int = 1) -> Place:
        """Returns the place inside class `minor` of the qdisc `handle` on this device."""
        return Place(self.device, f"parent {handle}{minor:x}")


class Room(Protocol):
    """A kind of queue that a topology can name: its tc commands and their comparison with tc's read-back.

    `wanted.queue` is of that kind in every method.
    """

    @property
    def kind(self) -> str: ...  # the name in topology files
    @property
    def root(self) -> str: ...  # tc's name of the qdisc that limits the rate: its own, or the bucket above
    @property
    def shapes(self) -> bool: ...  # whether it limits the rate itself; else a token bucket above it does
    def lines(self, wanted: Impairment, at: Place) -> list[str]: ...  # tc lines that create the queue
    def changes(
        self, before: Impairment, after: Impairment, at: Place
    ) -> list[str] | None: ...  # tc lines that keep waiting packets; None: create it anew
    def forget(self, wanted: Impairment, at: Place) -> list[str]: ...  # tc lines that reset its state
    def parts(self, wanted: Impairment) -> tuple[Part, ...]: ...
    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]: ...
    def packets(self, wanted: Impairment) -> int: ...  # the most packets that it can hold
    def lone_bps(self, wanted: Impairment) -> int: ...  # rate of unmarked packets without other traffic
    def at_once_bytes(self, wanted: Impairment) -> int: ...  # burst that passes above the rate, if it shapes


def entry(entries: Sequence[Entry], handle: str) -> Entry:
    """Returns the read-back of the qdisc or class with that handle; empty if there is none."""
    return next((e for e in entries if e.get("handle") == handle and "filter" not in e), {})


def differing(wanted: Sequence[tuple[str, float, object, float]]) -> list[Mismatch]:
    """Returns (field, asked, read) for each item whose read value is no number or differs by more than its
    tolerance.
    """
    return [
        (field, asked, read)
        for field, asked, read, tolerance in wanted
        if not isinstance(read, int | float) or abs(asked - read) > tolerance
    ]


def leaf_parts(bands: Sequence[Band]) -> tuple[Part, ...]:
    """Returns one part for each band: the band's own queue."""
    return tuple(Part(band.name, f"{LEAF + index:x}:") for index, band in enumerate(bands))
