"""Defines the placement problem in numbers: items, the capacity and load of hosts, and traffic
between items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .demand import NOTHING, Demand

# The most work of a host, in even shares of the lab's work, that a placement accepts to save traffic.
UNEVEN = 1.25
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Item:
    """Parts of the lab that are placed together on one host. `hosts`: the numbers of the hosts allowed for
    them.
    """

    demand: Demand = NOTHING
    # segment -> number of ports that the item needs on its bridge
    ports: Mapping[str, int] = field(default_factory=dict)
    hosts: tuple[int, ...] | None = None  # None: any host
    # number of a rule of `apart` -> the side on which the item is
    sides: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Room:
    """A host's capacity for the lab; None: unknown, which counts as unlimited."""

    name: str
    cores: float | None
    mhz: float | None  # MHz, the sum of the clock rates of all cores
    memory_bytes: int | None
    ports: int  # largest number of ports of a bridge
    even: float  # share of the lab's work that the host gets if work is spread evenly


@dataclass(slots=True)
class Load:
    """The sum of the items placed on a host so far: demand, bridge ports by segment, and sides of `apart`
    rules.
    """

    number: int
    room: Room
    demand: Demand = NOTHING
    ports: Counter[str] = field(default_factory=Counter)
    sides: dict[int, Counter[int]] = field(default_factory=dict)

    def lack(self, item: Item) -> str:
        """Returns the first reason why the item does not fit on the host, as text; "" if it fits."""
        room, wanted = self.room, self.demand + item.demand
        if item.hosts is not None and self.number not in item.hosts:
            return "the file puts it elsewhere"
        if room.cores is not None and wanted.cores > room.cores + _ROUNDING:
            return f"{wanted.cores - room.cores:.3g} more cores reserved than it has"
        if room.mhz is not None and wanted.mhz + _mhz(wanted.cores, room) > room.mhz * (1 + _ROUNDING):
            return f"{wanted.mhz + _mhz(wanted.cores, room) - room.mhz:.4g} MHz more reserved than it has"
        if room.memory_bytes is not None and wanted.memory_bytes > room.memory_bytes:
            return f"{(wanted.memory_bytes - room.memory_bytes) / 2**20:,.0f} MiB more than its memory"
        for segment, count in item.ports.items():
            if self.ports[segment] + count > room.ports:
                return f"its bridge of {segment} has {room.ports} ports beside the tunnel's"
        if self._opposed(item):
            return "`apart` forbids it"
        return ""

    def _opposed(self, item: Item) -> bool:
        """Returns whether the host has an item of another side of one of the item's `apart` rules."""
        return any(any(side != own for side in self.sides.get(rule, ())) for rule, own in item.sides.items())

    def fits(self, item: Item) -> bool:
        return not self.lack(item)

    def even(self, item: Item) -> bool:
        """Returns whether the host's work with the item stays within 1.25 times its even share."""
        return self.demand.work + item.demand.work <= self.room.even * UNEVEN + _ROUNDING

    def add(self, item: Item) -> None:
        self.demand += item.demand
        self.ports.update(item.ports)
        for rule, side in item.sides.items():
            self.sides.setdefault(rule, Counter())[side] += 1

    def remove(self, item: Item) -> None:
        self.demand += Demand(*(-value for value in _values(item.demand)))  # type: ignore[arg-type]
        self.ports.subtract(item.ports)
        for rule, side in item.sides.items():
            self.sides[rule][side] -= 1
            if not self.sides[rule][side]:
                del self.sides[rule][side]


def _values(one: Demand) -> tuple[float, float, float, float]:
    return one.cores, one.mhz, one.memory_bytes, one.work


def _mhz(cores: float, room: Room) -> float:
    """Returns cores in MHz of the host; 0 if its cores or clock are unknown."""
    return cores * room.mhz / room.cores if room.mhz is not None and room.cores else 0.0


@dataclass(frozen=True)
class Problem:
    """A placement problem: the items, the hosts' capacities, and the traffic between items."""

    items: Sequence[Item]
    rooms: Sequence[Room]
    near: Sequence[Mapping[int, float]]  # item -> other item -> traffic in both directions (bit/s)

    @cached_property
    def degrees(self) -> list[float]:
        """Each item's traffic with all other items, in bit/s."""
        return [sum(others.values()) for others in self.near]


def cut(problem: Problem, where: Sequence[int]) -> float:
    """Returns the traffic between hosts of a placement, in bit/s."""
    return sum(
        bps
        for item, others in enumerate(problem.near)
        for other, bps in others.items()
        if item < other and where[item] != where[other]
    )
