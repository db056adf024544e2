"""MQTT topics of the file: placeholders filled in for each client of a group."""

from __future__ import annotations

import re

from ...language.scalars import LONGEST_NAME

PLACEHOLDERS = ("node", "group", "index", "next", "previous")
_LONGEST_VALUE = LONGEST_NAME + 6  # a member's name has its number behind it
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def unknown(topic: str) -> list[str]:
    """The placeholders of a topic that do not exist."""
    return [name for name in _PLACEHOLDER.findall(topic) if name not in PLACEHOLDERS]


def longest(topic: str) -> int:
    """Bytes of the topic with names and numbers as long as they may be."""
    return len(_PLACEHOLDER.sub("x" * _LONGEST_VALUE, topic).encode())


def fill(topic: str, *, node: str, group: str, index: int, count: int) -> str:
    """The topic of client `index` (from 1) of `count`; next and previous wrap around: permutations."""
    values = {
        "node": node,
        "group": group,
        "index": index,
        "next": index % count + 1,
        "previous": (index - 2) % count + 1,
    }
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), topic)


def matches(pattern: str, topic: str) -> bool:
    """Whether a subscription's topic filter takes a topic (MQTT 3.1.1, section 4.7)."""
    wanted, given = pattern.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("#", "+"):
        return False
    for position, level in enumerate(wanted):
        if level == "#":
            return True
        if position >= len(given) or level not in ("+", given[position]):
            return False
    return len(wanted) == len(given)


def filter_fault(pattern: str) -> str | None:
    """Why a topic filter is not one, or None."""
    levels = pattern.split("/")
    if any("#" in level and level != "#" for level in levels) or "#" in levels[:-1]:
        return "# stands alone, as the last level"
    if any("+" in level and level != "+" for level in levels):
        return "+ stands alone in its level"
    return None
