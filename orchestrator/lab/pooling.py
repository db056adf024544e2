"""Judges directions with the same impairment together: their frames together show rare events sooner.

All of them have the same read-back and draw from different seeds, so frames of several directions count as
further frames of one. A direction that fails by itself is left out of the pool for that quantity and keeps
its verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from contract.plan import Direction, Link
from contract.proof import Proven
from orchestrator.lab.judgement import Seen
from orchestrator.lab.probes import directions

Way = tuple[str, str]  # link, direction
Again = Callable[[Direction, Seen], Sequence[Proven]]
POOLED = ("delay", "jitter", "distribution", "loss", "duplicate", "corrupt", "reorder")


def alike(links: Sequence[Link]) -> list[dict[Way, Direction]]:
    """Groups the directions that have an impairment: a group has the same impairment on the same host, and
    directions through a bridge VM have groups of their own.
    """
    groups: dict[tuple[str, str, bool], dict[Way, Direction]] = defaultdict(dict)
    for link, name, direction in directions(links):
        if direction.impairment.present:
            key = repr(direction.impairment), direction.host or "", direction.enter is not None
            groups[key][link, name] = direction
    return list(groups.values())


def pooled(
    groups: Sequence[Mapping[Way, Direction]],
    seen: Mapping[Way, Seen],
    found: Sequence[Proven],
    again: Again,
) -> list[Proven]:
    """Returns `found` with "cannot tell" replaced by the judgement of the group's directions together, even
    if that cannot tell either.

    Applies to the quantities in POOLED; directions that fail or have no frames are left out of the pool, and
    with fewer than two the judgement stays. again: judges one series of frames.
    """
    group_of = {way: number for number, group in enumerate(groups) if len(group) > 1 for way in group}
    failing = {(j.link, j.direction, j.quantity) for j in found if j.verdict == "fails"}
    known: dict[tuple[int, str], Proven | None] = {}
    result = []
    for line in found:
        number = group_of.get((line.link, line.direction))
        if number is None or line.verdict != "cannot tell" or line.quantity not in POOLED:
            result.append(line)
            continue
        if (number, line.quantity) not in known:
            ways = [w for w in groups[number] if (*w, line.quantity) not in failing and w in seen]
            known[number, line.quantity] = _together(groups[number], ways, seen, line.quantity, again)
        one = known[number, line.quantity]
        result.append(line if one is None else replace(one, link=line.link, direction=line.direction))
    return result


def _together(
    group: Mapping[Way, Direction], ways: Sequence[Way], seen: Mapping[Way, Seen], quantity: str, again: Again
) -> Proven | None:
    """Judges the frames of all `ways` as one direction; None if there are fewer than two, or if the quantity
    has no answer.
    """
    if len(ways) < 2:
        return None
    lines = again(group[ways[0]], _sum([seen[way] for way in ways]))
    line = next((j for j in lines if j.quantity == quantity), None)
    if line is None:
        return None
    told = f"{len(ways)} equal directions together"
    reason = f"{line.reason}; {told}" if line.reason else told
    return replace(line, directions=len(ways), reason=reason)


def _sum(parts: Sequence[Seen]) -> Seen:
    """Returns the counts and delays of all parts added up to one series, without arrival times."""
    return Seen(
        sum(p.sent for p in parts),
        sum(p.received for p in parts),
        sum(p.duplicates for p in parts),
        sum(p.corrupted for p in parts),
        [d for p in parts for d in p.delays_ns],
        [],
    )


def added(first: Seen, more: Seen) -> Seen:
    """Returns two series of the same direction as one, with the arrival times of both."""
    arrivals = [*first.arrivals_ns, *more.arrivals_ns]
    return replace(_sum([first, more]), arrivals_ns=arrivals)
