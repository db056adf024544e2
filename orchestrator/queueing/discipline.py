"""Defines `QueueKind`, the interface of the kinds of queue that a topology can name, and `Place`, the place
of a qdisc on a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from contract.plan import Band, Discipline, Impairment

from .kind import Entry, Mismatch
from .settings import Key

DELAY, RATE, QUEUE, LEAF = "1:", "2:", "3:", 0x10  # handles; LEAF is that of the first band's queue
# The order in which waiting frames leave, for bounds. fifo: as they came; priority: the first band first;
# guarantee: each band has its rate; credit: priority, and a credit limits bands; any: none that a bound may
# use; unknown: no service curve is known.
Order = Literal["fifo", "priority", "guarantee", "credit", "any", "unknown"]


@dataclass(frozen=True, slots=True)
class Part:
    """A queue with counters of its own: a qdisc, or one tin (priority class) of a qdisc.

    marked_at: offset in bytes of the 32-bit counter of packets marked by ECN, in the counters that only this
    kind of qdisc has (TCA_STATS_APP); None if it has no such counter.
    """

    name: str
    handle: str  # "10:"
    tin: int | None = None
    marked_at: int | None = None

    @property
    def number(self) -> int:
        """Returns the handle as the kernel stores it: the major number in the upper 16 bits."""
        return int(self.handle.rstrip(":"), 16) << 16


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a qdisc: the device, and the parent on it."""

    device: str
    parent: str  # "root", or "parent 1:1"

    def qdisc(self, handle: str, words: str) -> str:
        """Returns a line for `tc -batch` that sets a qdisc at this place."""
        return f"qdisc replace dev {self.device} {self.parent} handle {handle} {words}"

    def below(self, handle: str, minor: int = 1) -> Place:
        """Returns the place inside class `minor` of the qdisc `handle` on this device."""
        return Place(self.device, f"parent {handle}{minor:x}")


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake in a queue of a topology file: the keys from the queue's kind to it, the value as text (None:
    as in the file), the rule and the remedy.
    """

    at: tuple[str, ...]
    value: str | None
    rule: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Bands:
    """The bands of a kind of queue. `keys`: the keys of each band besides pcp, dscp, port and limit, by the
    names of the plan's fields; `model`: the name of a band's model in the schema; `most`: the largest number
    of bands.
    """

    model: str
    meaning: str
    most: int
    keys: Mapping[str, Key]


class NoSettings:
    """The settings of a kind for which a topology file states only bands."""


class QueueKind:
    """Everything that depends on one kind of queue that a topology can name.

    Each kind defines the attributes without a value and the methods that raise an error; the others have
    values that fit most kinds. `wanted.queue` is of that kind in every method.
    """

    kind: str  # the kind's name in topology files
    meaning: str  # one sentence for the reference of keys
    settings: Any = NoSettings  # frozen dataclass with fields by settings.py; its docstring explains the kind
    bands: Bands | None = None  # the form of the bands, for a kind that has bands in place of settings
    root = "tbf"  # tc's name of the qdisc that limits the rate: the kind's own, or the bucket above it
    shapes = False  # whether the kind's qdisc limits the rate itself; else a token bucket above it does
    qdisc: str = ""  # tc's name of the kind's own qdisc; "" if it uses only qdiscs of other kinds
    trial: str = ""  # arguments of `tc qdisc add dev lo root` that show whether a kernel has the kind
    module: str = ""  # the kernel module that has the qdisc
    config: str = ""  # the option of the kernel's build that includes the qdisc
    order: Order = "unknown"
    outages = True  # whether the queue stops at a rate of one frame per outage
    keeps = False  # whether a change keeps the options that the command does not name
    counts = False  # whether the options that netlink shows contain counters
    port_speed = False  # whether the qdisc computes with the speed that its device states: veth's, 10 Gbit/s
    by_itself = False  # whether kernels give the qdisc to devices for which nobody set a queue
    # Examples for tests. If the kind can change its settings in place, tc changes the first example to the
    # second.
    examples: tuple[Discipline, Discipline]

    # The methods that convert the file's settings to the plan, and check them, follow.

    def planned(self, settings: dict[str, Any], bands: tuple[Band, ...], rate_bps: int) -> Discipline:
        """Returns the plan's queue. settings: values of the file by names of the plan's fields, None where
        the file leaves out a key whose default is None; rate_bps: of the direction.
        """
        return Discipline(self.kind, settings, bands)

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        """Yields the mistakes in settings or bands whose form is correct. A rate of 0 is not a
        mistake here.
        """
        yield from ()

    def trace_faults(self, wanted: Impairment, slowest_bps: int, least_bps: int) -> Iterator[Fault]:
        """Yields the reasons why the queue cannot follow a trace whose slowest rate above 0 is `slowest_bps`.
        No queue works below `least_bps`.
        """
        yield from ()

    def impossible(self, wanted: Impairment) -> str | None:
        """Returns the reason why the queue cannot work after a change in a running lab; None if it can."""
        return None

    def at_rate(self, queue: Discipline, before_bps: int, after_bps: int) -> Discipline:
        """Returns the queue with the settings that it needs when a trace changes the direction's rate."""
        return queue

    def serves_dscp(self, wanted: Impairment) -> bool:
        """Returns whether the queue distinguishes packets by code points that no band names."""
        return False

    def words(self, wanted: Impairment) -> str:
        """Returns the settings as text for plan and page, without the bands; "" to show only the kind."""
        return ""

    # The kernel

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        """Returns tc lines that create the queue."""
        raise NotImplementedError

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns tc lines that keep waiting packets; None: create the queue anew."""
        return self.lines(after, at)

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        """Returns tc lines that reset the part of the queue's state that depends on past packets."""
        return []

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        """Returns the queues with counters of their own."""
        return (Part(self.kind, QUEUE),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        """Returns (field, requested, read) for each value that differs in tc's output."""
        raise NotImplementedError

    def packets(self, wanted: Impairment) -> int:
        """Returns the largest number of packets that the queue can hold."""
        raise NotImplementedError

    def lone_bps(self, wanted: Impairment) -> int:
        """Returns the rate of unmarked packets without other traffic."""
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        """Returns the burst that passes above the rate, if the queue limits the rate itself."""
        return 0

    def fake(self, arguments: list[str]) -> Entry:
        """Returns the options that tc would show after `tc qdisc ... KIND ARGUMENTS`, for the fake driver."""
        raise NotImplementedError


def entry(entries: Sequence[Entry], handle: str) -> Entry:
    """Returns the read-back of the qdisc or class with that handle; empty if there is none."""
    return next((e for e in entries if e.get("handle") == handle and "filter" not in e), {})


def given(arguments: list[str]) -> dict[str, str]:
    """Maps each word to the word after it; the last word to ""."""
    return dict(zip(arguments, [*arguments[1:], ""], strict=True))


def differing(wanted: Sequence[tuple[str, float, object, float]]) -> list[Mismatch]:
    """Returns (field, requested, read) for each item whose read value is not a number or differs by more than
    its tolerance.
    """
    return [
        (field, asked, read)
        for field, asked, read, tolerance in wanted
        if not isinstance(read, int | float) or abs(asked - read) > tolerance
    ]


def leaf_parts(bands: Sequence[Band]) -> tuple[Part, ...]:
    """Returns one part for each band: the band's own queue."""
    return tuple(Part(band.name, f"{LEAF + index:x}:") for index, band in enumerate(bands))
