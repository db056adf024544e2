"""Finds the links between sets of nodes and segments, for a partition of a network into these sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .document import Event, File
from .expansion import Expansion, implicit_link
from .selection import select_all

Ends = tuple[str, str]


@dataclass(frozen=True)
class Cut:
    """The links that separate sets. torn: two members of one set that reach each other before the cut and not
    after it; None if there are none.
    """

    links: tuple[str, ...]
    torn: Ends | None


def ends_of(model: File, names: Expansion) -> dict[str, Ends]:
    """Returns the two ends (nodes or segments) of each link of the lab, by the link's name. A node on a
    segment gets a link with the name `implicit_link` if the file has none.
    """
    found = dict(names.wires)
    declared: dict[Ends, str] = {}
    for name, link in model.links.items():
        a, b = link.between
        if a in model.segments and b in model.segments:
            found[name] = (a, b)
        elif b in model.segments:
            declared |= {(names.link_node[one], b): one for one in names.links[name]}
    for node, machine in names.nodes.items():
        for index, segment in enumerate(machine.segment):
            found[declared.get((node, segment), implicit_link(node, index))] = (node, segment)
    return found


def members_of(targets: Iterable[str], model: File, names: Expansion) -> list[str]:
    """Returns the nodes and segments of one set of a `split` event: groups are expanded, and names that do
    not exist left out.
    """
    found: dict[str, None] = {}
    for target in targets:
        nodes = select_all([target], list(names.nodes), names.groups)
        found.update(dict.fromkeys([target] if target in model.segments else nodes))
    return list(found)


def cut_by(event: Event, model: File, names: Expansion) -> Cut:
    """Returns the links that a `split` event cuts."""
    sets = [members_of(one, model, names) for one in event.split or []]
    return cut(sets, ends_of(model, names))


def cut(sets: Sequence[Iterable[str]], links: Mapping[str, Ends]) -> Cut:
    """Returns the links between sets of nodes and segments, in the order of `links` (name -> its two ends).

    A node or segment that no set names belongs to the nearest set, counted in links; of several nearest sets,
    to the first. A node or segment that no set reaches has no links to cut. No end may be in two sets.
    """
    near = _near(links)
    owner = _owners(sets, near)
    found = tuple(
        name for name, (a, b) in links.items() if a in owner and b in owner and owner[a] != owner[b]
    )
    left = _near({name: ends for name, ends in links.items() if name not in found})
    return Cut(found, next(filter(None, (_torn(list(one), near, left) for one in sets)), None))


def _near(links: Mapping[str, Ends]) -> dict[str, dict[str, None]]:
    near: dict[str, dict[str, None]] = {}
    for a, b in links.values():
        near.setdefault(a, {})[b] = None
        near.setdefault(b, {})[a] = None
    return near


def _owners(sets: Sequence[Iterable[str]], near: Mapping[str, Mapping[str, None]]) -> dict[str, int]:
    """Returns the set of each end that a set names or reaches; all sets grow by one link at a time."""
    owner = {name: number for number, one in enumerate(sets) for name in one}
    edge = sorted(owner, key=lambda name: owner[name])
    while edge:
        further: list[str] = []
        for name in edge:
            for other in near.get(name, ()):
                if other not in owner:
                    owner[other] = owner[name]
                    further.append(other)
        edge = sorted(further, key=lambda name: owner[name])
    return owner


def _torn(
    names: Sequence[str], before: Mapping[str, Mapping[str, None]], after: Mapping[str, Mapping[str, None]]
) -> Ends | None:
    for first in names[:1]:
        had, has = _reached(first, before), _reached(first, after)
        return next(((first, name) for name in names if name in had and name not in has), None)
    return None


def _reached(start: str, near: Mapping[str, Mapping[str, None]]) -> set[str]:
    found, left = {start}, [start]
    while left:
        fresh = [name for name in near.get(left.pop(), ()) if name not in found]
        found.update(fresh)
        left += fresh
    return found
