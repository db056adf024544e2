"""Which nodes a text names: a node, a group, or patterns such as `client*` and `client[1-20]`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence

_RANGE = re.compile(r"(.*)\[([0-9]{1,6})-([0-9]{1,6})\](.*)")


def members(group: str, count: int) -> tuple[str, ...]:
    """The node names of a group: client1 ... client350."""
    return tuple(f"{group}{i}" for i in range(1, count + 1))


def select(selector: str, nodes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The names that one selector means, in the order of `nodes`; empty where it means none."""
    if selector in groups:
        return tuple(groups[selector])
    if match := _RANGE.fullmatch(selector):
        form = re.compile(re.escape(match[1]) + "([0-9]{1,6})" + re.escape(match[4]))
        low, high = int(match[2]), int(match[3])
        return tuple(name for name in nodes if (m := form.fullmatch(name)) and low <= int(m[1]) <= high)
    if any(sign in selector for sign in "*?["):
        return tuple(name for name in nodes if fnmatch.fnmatchcase(name, selector))
    return (selector,) if selector in nodes else ()


def select_all(
    selectors: Iterable[str], nodes: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """All that the selectors mean, once each, in the order of the selectors."""
    found: dict[str, None] = {}
    for selector in selectors:
        found.update(dict.fromkeys(select(selector, nodes, groups)))
    return tuple(found)
