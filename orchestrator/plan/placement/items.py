"""The placement problem in numbers: items for one host each, the hosts' capacity, traffic between items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .demand import NOTHING, Demand

# How far above its even share of the lab's work a host may go for the sake of less traffic.
UNEVEN = 1.25
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Item:
    """Parts of the lab that stand together. `hosts`: numbers of those that they may stand on."""

    demand: Demand = NOTHING
    ports: Mapping[str, int] = field(default_factory=dict)  # on the bridge of each segment
    hosts: tuple[int, ...] | None = None  # None: any
    sides: Mapping[int, int] = field(default_factory=dict)  # rule of `apart` -> side


@dataclass(frozen=True, slots=True)
class Room:
    """A host's capacity for the lab; None is unknown and counts as unlimited."""

    name: str
    cores: float | None
    mhz: float | None  # of all cores together
    memory_bytes: int | None
    ports: int  # of a bridge
    even: float  # share of the lab's work


@dataclass(slots=True)
class Load:
    """The load of a host so far."""

    number: int
    room: Room
    demand: Demand = NOTHING
    ports: Counter[str] = field(default_factory=Counter)
    sides: dict[int, Counter[int]] = field(default_factory=dict)

    def lack(self, item: Item) -> str:
        """The resource that the host lacks for the item; "" if it fits."""
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
        return any(any(side != own for side in self.sides.get(rule, ())) for rule, own in item.sides.items())

    def fits(self, item: Item) -> bool:
        return not self.lack(item)

    def even(self, item: Item) -> bool:
        """Whether the host stays near its share of the work."""
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
    return cores * room.mhz / room.cores if room.mhz is not None and room.cores else 0.0


@dataclass(frozen=True)
class Problem:
    """Items, rooms and what passes between items."""

    items: Sequence[Item]
    rooms: Sequence[Room]
    near: Sequence[Mapping[int, float]]  # item -> item -> bit/s, both ways; none with itself

    @cached_property
    def degrees(self) -> list[float]:
        """bit/s of each item with all others."""
        return [sum(others.values()) for others in self.near]


def cut(problem: Problem, where: Sequence[int]) -> float:
    """bit/s between hosts."""
    return sum(
        bps
        for item, others in enumerate(problem.near)
        for other, bps in others.items()
        if item < other and where[item] != where[other]
    )
