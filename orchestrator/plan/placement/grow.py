"""Makes a first placement: for host after host, grows a region of closely connected items; or packs items
tightly.

The next item of a region is the one with the largest share of its traffic to items already on the host; O(E
log E). Graph growing follows Karypis and Kumar, "A fast and high quality multilevel scheme" (SIAM J. Sci.
Comput. 20, 1998).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from .items import Load, Problem


class NoRoomError(Exception):
    """Raised if an item fits on no host in addition to the items that are already placed. item: the item's
    number; loads: the loads of all hosts at that time.
    """

    def __init__(self, item: int, loads: Sequence[Load]) -> None:
        super().__init__(item)
        self.item, self.loads = item, loads


def grown(problem: Problem) -> list[int]:
    """Returns the host number of each item, placed by growing regions after the items with only one allowed
    host; raises NoRoomError if an item fits on no host.
    """
    loads = [Load(number, room) for number, room in enumerate(problem.rooms)]
    where = [-1] * len(problem.items)
    for number, item in enumerate(problem.items):
        if item.hosts is not None and len(item.hosts) == 1:
            _put(problem, where, loads, number, item.hosts[0])
    for place, load in enumerate(loads):
        free = sum(item.demand.work for item, host in zip(problem.items, where, strict=True) if host < 0)
        later = sum(other.demand.work for other in loads[place:])
        share = load.room.even / (sum(other.room.even for other in loads[place:]) or 1.0)
        _fill(problem, where, loads, load, (free + later) * share)
    rest = [number for number, host in enumerate(where) if host < 0]
    rest.sort(key=lambda number: -problem.items[number].demand.work)
    for number in rest:
        _put(problem, where, loads, number, _best(problem, where, loads, number))
    return where


def packed(problem: Problem) -> list[int]:
    """Returns the host number of each item. Items with the fewest allowed hosts come first, then the largest;
    each is placed on the fullest host on which it fits.

    This suits labs that barely fit; raises NoRoomError if an item fits on no host.
    """
    loads = [Load(number, room) for number, room in enumerate(problem.rooms)]
    where = [-1] * len(problem.items)

    def size(number: int) -> tuple[float, float]:
        item = problem.items[number]
        shares = [_share(item.demand.memory_bytes, room.memory_bytes) for room in problem.rooms]
        shares += [_share(item.demand.cores, room.cores) for room in problem.rooms]
        return -(len(problem.rooms) - len(item.hosts or problem.rooms)), -max(shares)

    for number in sorted(range(len(problem.items)), key=size):
        item = problem.items[number]
        fitting = [load for load in loads if load.fits(item)]
        if not fitting:
            raise NoRoomError(number, loads)
        tightest = max(fitting, key=lambda load: (_fullness(load), -load.number))
        _put(problem, where, loads, number, tightest.number)
    return where


def _share(wanted: float, room: float | None) -> float:
    """Returns the share of `room` that `wanted` takes; 0 if the room is unknown or 0."""
    return wanted / room if room else 0.0


def _fullness(load: Load) -> float:
    room = load.room
    return max(_share(load.demand.memory_bytes, room.memory_bytes), _share(load.demand.cores, room.cores))


def _put(problem: Problem, where: list[int], loads: Sequence[Load], number: int, host: int) -> None:
    """Places an item on a host; raises NoRoomError if it does not fit."""
    if not loads[host].fits(problem.items[number]):
        raise NoRoomError(number, loads)
    where[number] = host
    loads[host].add(problem.items[number])


def _fill(problem: Problem, where: list[int], loads: Sequence[Load], load: Load, target: float) -> None:
    """Grows the region of one host until its work, in cores, reaches `target`, or until every item that fits
    would exceed it by more than half of the item.
    """
    joined: dict[int, float] = {}
    frontier: list[tuple[float, int]] = []

    def look(number: int) -> None:
        for other, bps in problem.near[number].items():
            if where[other] < 0:
                joined[other] = joined.get(other, 0.0) + bps
                heapq.heappush(frontier, (-joined[other] / problem.degrees[other], other))

    for number, host in enumerate(where):
        if host == load.number:
            look(number)
    seeds = iter(range(len(where)))

    def may(number: int) -> bool:
        if where[number] >= 0:
            return False
        item, missing = problem.items[number], target - load.demand.work
        return item.demand.work <= 2 * missing and load.even(item) and load.fits(item)

    while load.demand.work < target:
        following = _next(frontier, may)
        if following is None:
            following = next((number for number in seeds if may(number)), None)
        if following is None:
            return
        _put(problem, where, loads, following, load.number)
        look(following)


def _next(frontier: list[tuple[float, int]], may: Callable[[int], bool]) -> int | None:
    """Removes items from the heap until `may` accepts one, the most closely connected first, and returns it;
    None if there is none. An item's outdated heap entries come after its newer ones.
    """
    while frontier:
        _, number = heapq.heappop(frontier)
        if may(number):
            return number
    return None


def _best(problem: Problem, where: Sequence[int], loads: Sequence[Load], number: int) -> int:
    """Returns the best host for a remaining item: first one whose work stays near its even share, then with
    most of the item's traffic, then with least work; raises NoRoomError if the item fits on no host.
    """
    item = problem.items[number]
    joined = dict.fromkeys(range(len(loads)), 0.0)
    for other, bps in problem.near[number].items():
        if where[other] >= 0:
            joined[where[other]] += bps
    fitting = [load for load in loads if load.fits(item)]
    if not fitting:
        raise NoRoomError(number, loads)

    def worth(load: Load) -> tuple[bool, float, float, int]:
        work = load.demand.work / load.room.even if load.room.even else 0.0
        return load.even(item), joined[load.number], -work, -load.number

    return max(fitting, key=worth).number
