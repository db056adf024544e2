"""Checks MQTT topic filters, and matches topics against them."""

from __future__ import annotations

SHARED = "$share/"  # prefix of shared subscriptions; the broker sends each message to one member of a group


def inner(pattern: str) -> str:
    """Returns the topic filter of a subscription; for $share/GROUP/FILTER, it is FILTER."""
    return pattern.split("/", 2)[-1] if pattern.startswith(SHARED) else pattern


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


def share_fault(pattern: str) -> str | None:
    """Returns the reason why a text is not a valid shared subscription; None if it is valid, or does not
    begin with $share/.
    """
    parts = pattern.split("/", 2)
    if not pattern.startswith(SHARED) or (len(parts) == 3 and all(parts) and not set(parts[1]) & set("+#")):
        return None
    return "a shared subscription is $share/GROUP/FILTER, its group without + and #"


def filter_fault(pattern: str) -> str | None:
    """Returns the reason why a text is not a valid topic filter; None if it is valid."""
    levels = pattern.split("/")
    if any("#" in level and level != "#" for level in levels) or "#" in levels[:-1]:
        return "# stands alone, as the last level"
    if any("+" in level and level != "+" for level in levels):
        return "+ stands alone in its level"
    return None
