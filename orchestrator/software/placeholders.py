"""Fills placeholders such as {node} and {index} in names that differ between the clients of a group."""

from __future__ import annotations

import re

from ..language.scalars import LONGEST_NAME
from .scene import Placed, Scene

PLACEHOLDERS = ("node", "group", "index", "next", "previous", "session")
REMEDY = "use {node}, {group}, {index}, {next}, {previous} or {session}"
_LONGEST_VALUE = LONGEST_NAME + 6  # the name of a group's member ends with its number
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def unknown(text: str) -> list[str]:
    """Returns the names of those placeholders in a text that do not exist."""
    return [name for name in _PLACEHOLDER.findall(text) if name not in PLACEHOLDERS]


def longest(text: str) -> int:
    """Returns the length of the text in bytes when each placeholder has its longest value."""
    return len(_PLACEHOLDER.sub("x" * _LONGEST_VALUE, text).encode())


def fill(text: str, *, node: str, group: str, index: int, count: int, session: int = 1) -> str:
    """Fills the placeholders for session `session` of client `index` of `count` (session and index count from
    1); next and previous wrap around.
    """
    values = {
        "node": node,
        "group": group,
        "index": index,
        "next": index % count + 1,
        "previous": (index - 2) % count + 1,
        "session": session,
    }
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), text)


def fill_for(scene: Scene, placed: Placed, text: str) -> str:
    """Fills the placeholders of a text for the node of `placed`."""
    node = placed.node
    group, index, count = scene.group_of[node], scene.index_of[node], scene.count(node)
    return fill(text, node=node, group=group, index=index, count=count, session=placed.session)
