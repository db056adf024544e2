"""MQTT topic filters: whether they are ones, and which topics they take."""

from __future__ import annotations


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
