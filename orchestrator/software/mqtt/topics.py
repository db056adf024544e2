"""Checks MQTT topic filters, and matches topics against them."""

from __future__ import annotations


def matches(pattern: str, topic: str) -> bool:
    """Returns whether a topic filter matches a topic (MQTT 3.1.1, section 4.7)."""
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
    """Returns why a text is no valid topic filter; None if it is one."""
    levels = pattern.split("/")
    if any("#" in level and level != "#" for level in levels) or "#" in levels[:-1]:
        return "# stands alone, as the last level"
    if any("+" in level and level != "+" for level in levels):
        return "+ stands alone in its level"
    return None
