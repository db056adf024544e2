"""Improves a placement by moves of single items, each of which lowers the traffic between hosts.

The moves are those of Fiduccia and Mattheyses (1982) without uphill moves, in at most PASSES passes over all
items.
"""

from __future__ import annotations

from collections.abc import Sequence

from .items import Load, Problem

PASSES = 8


def refined(problem: Problem, where: Sequence[int]) -> list[int]:
    """Returns the placement after at most 8 passes of moves; `where` stays unchanged. Takes O(PASSES x E)."""
    found = list(where)
    loads = [Load(number, room) for number, room in enumerate(problem.rooms)]
    for item, host in zip(problem.items, found, strict=True):
        loads[host].add(item)
    for _ in range(PASSES):
        moves = [_moved(problem, found, loads, number) for number in range(len(found))]
        if not any(moves):
            break
    return found


def _moved(problem: Problem, where: list[int], loads: Sequence[Load], number: int) -> bool:
    """Moves an item to the host with most of its traffic, if that is more than on its own host and the item
    fits there within the even share. Returns whether it moved.
    """
    here, item = where[number], problem.items[number]
    joined: dict[int, float] = {here: 0.0}
    for other, bps in problem.near[number].items():
        joined[where[other]] = joined.get(where[other], 0.0) + bps
    better = sorted((host for host in joined if joined[host] > joined[here]), key=lambda h: (-joined[h], h))
    for host in better:
        if loads[host].even(item) and loads[host].fits(item):
            loads[here].remove(item)
            loads[host].add(item)
            where[number] = host
            return True
    return False
