"""Places items on hosts: makes a few placements, improves them by moves, and returns the best one;
deterministic.

Exact placement is a bin-packing problem, which is hard. A placement that is found keeps every constraint, but
when room is scarce, a failure does not prove that no placement exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from .grow import NoRoomError, grown, packed
from .items import UNEVEN, Item, Load, Problem, cut
from .refine import refined


def place(problem: Problem, families: Sequence[str]) -> list[int]:
    """Returns the host number of each item: the best of a placement by regions and one by families, or a
    tight packing if both fail. families: items with the same name (except "") are kept together where
    possible.

    Raises NoRoomError if no placement is found.
    """
    found, failed = list[list[int]](), list[NoRoomError]()
    ways: tuple[Callable[[], list[int]], ...] = (
        lambda: grown(problem),
        lambda: _by_families(problem, families),
    )
    for way in ways:
        try:
            found.append(refined(problem, way()))
        except NoRoomError as error:
            failed.append(error)
    if not found:
        try:
            found.append(refined(problem, packed(problem)))
        except NoRoomError:
            raise failed[0] from None
    return min(found, key=lambda where: _cost(problem, where))


def _cost(problem: Problem, where: Sequence[int]) -> tuple[float, float, float]:
    """Returns the cost of a placement, compared in this order: work above 1.25 times the hosts' even shares,
    traffic between hosts (bit/s), and the largest ratio of a host's work to its even share.
    """
    work = [0.0] * len(problem.rooms)
    for item, host in zip(problem.items, where, strict=True):
        work[host] += item.demand.work
    shares = [done / room.even if room.even else 0.0 for done, room in zip(work, problem.rooms, strict=True)]
    beyond = sum(max(share - UNEVEN, 0.0) for share in shares)
    return round(beyond, 6), cut(problem, where), max(shares)


def _by_families(problem: Problem, families: Sequence[str]) -> list[int]:
    """Returns a placement that keeps whole families on one host; a family that fits whole on no empty host is
    placed item by item. Raises NoRoomError if a group fits on no host.
    """
    group_of, groups = _grouped(problem, families)
    near: list[dict[int, float]] = [{} for _ in groups]
    for number, others in enumerate(problem.near):
        own = group_of[number]
        for other, bps in others.items():
            if group_of[other] != own:
                near[own][group_of[other]] = near[own].get(group_of[other], 0.0) + bps
    merged = [_merged([problem.items[n] for n in members]) for members in groups]
    coarse = Problem(merged, problem.rooms, near)
    where = refined(coarse, grown(coarse))
    return [where[group] for group in group_of]


def _grouped(problem: Problem, families: Sequence[str]) -> tuple[list[int], list[list[int]]]:
    """Returns each item's group number, and the members of each group: a family of several items that fits
    whole on a host, or a single item.
    """
    members: dict[str, list[int]] = {}
    for number, family in enumerate(families):
        if family:
            members.setdefault(family, []).append(number)
    whole = {name for name, those in members.items() if len(those) > 1 and _fits_whole(problem, those)}
    group_of, groups, known = list[int](), list[list[int]](), dict[str, int]()
    for number, family in enumerate(families):
        if family in whole and family in known:
            groups[known[family]].append(number)
        else:
            known.setdefault(family, len(groups))
            groups.append([number])
        group_of.append(known[family] if family in whole else len(groups) - 1)
    return group_of, groups


def _fits_whole(problem: Problem, members: Sequence[int]) -> bool:
    """Returns whether all members fit together on an empty host, within its even share and without opposed
    `apart` rules.
    """
    items = [problem.items[number] for number in members]
    sides: dict[int, int] = {}
    for item in items:
        if any(sides.setdefault(rule, side) != side for rule, side in item.sides.items()):
            return False
    merged = _merged(items)
    loads = [Load(number, room) for number, room in enumerate(problem.rooms)]
    return any(load.fits(merged) and load.even(merged) for load in loads)


def _merged(items: Sequence[Item]) -> Item:
    """Returns one item with the sum of the items' demands and ports, their common hosts and all
    their sides.
    """
    if len(items) == 1:
        return items[0]
    demand, ports, sides = items[0].demand, Counter[str](), dict[int, int]()
    for item in items[1:]:
        demand += item.demand
    for item in items:
        ports.update(item.ports)
        sides |= item.sides
    return Item(demand, ports, _common(items), sides)


def _common(items: Sequence[Item]) -> tuple[int, ...] | None:
    """Returns the hosts that all items allow; None if all allow any host."""
    said = [item.hosts for item in items if item.hosts is not None]
    return tuple(host for host in said[0] if all(host in hosts for hosts in said)) if said else None
