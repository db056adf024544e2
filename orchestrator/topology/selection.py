"""Resolves selectors to names: a node, a group, or patterns such as `client*` and `client[1-20]`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence

_RANGE = re.compile(r"([^\[\]]*)\[([0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)\]([^\[\]]*)")


def members(group: str, count: int) -> tuple[str, ...]:
    """Returns the node names of a group: client1 ... client350."""
    return tuple(f"{group}{i}" for i in range(1, count + 1))


def select(selector: str, nodes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Returns the names that one selector matches, in the order of `nodes`; () if it matches none."""
    if selector in groups:
        return tuple(groups[selector])
    if match := _RANGE.fullmatch(selector):
        form = re.compile(re.escape(match[1]) + "(0|[1-9][0-9]{0,8})" + re.escape(match[3]))
        wanted = _spans(match[2])
        return tuple(
            name for name in nodes
            if (m := form.fullmatch(name)) and any(low <= int(m[1]) <= high for low, high in wanted)
        )  # fmt: skip
    if any(sign in selector for sign in "*?["):
        return tuple(name for name in nodes if fnmatch.fnmatchcase(name, selector))
    return (selector,) if selector in nodes else ()


def absent(selector: str, nodes: Sequence[str]) -> str | None:
    """Returns the first name of a range that does not exist; None if all exist, or if the selector is no
    range.
    """
    if (match := _RANGE.fullmatch(selector)) is None:
        return None
    known = set(nodes)
    for low, high in _spans(match[2]):
        for number in range(low, high + 1):
            if (name := f"{match[1]}{number}{match[3]}") not in known:
                return name
    return None


def _spans(text: str) -> list[tuple[int, int]]:
    """Parses the ranges of a selector: `1-5,8` becomes [(1, 5), (8, 8)]."""
    ends = [part.partition("-") for part in text.split(",")]
    return [(int(low), int(high or low)) for low, _, high in ends]


def select_all(
    selectors: Iterable[str], nodes: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Returns all names that the selectors match, each once, in the order of the selectors."""
    found: dict[str, None] = {}
    for selector in selectors:
        found.update(dict.fromkeys(select(selector, nodes, groups)))
    return tuple(found)
