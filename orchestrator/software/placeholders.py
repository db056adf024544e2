"""Placeholders in names of the file, filled in for each member of a group."""

from __future__ import annotations

import re

from ..language.scalars import LONGEST_NAME
from .scene import Placed, Scene

PLACEHOLDERS = ("node", "group", "index", "next", "previous")
REMEDY = "use {node}, {group}, {index}, {next} or {previous}"
_LONGEST_VALUE = LONGEST_NAME + 6  # a member's name has its number behind it
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def unknown(text: str) -> list[str]:
    """The placeholders of a text that do not exist."""
    return [name for name in _PLACEHOLDER.findall(text) if name not in PLACEHOLDERS]


def longest(text: str) -> int:
    """Bytes of the text with names and numbers as long as they may be."""
    return len(_PLACEHOLDER.sub("x" * _LONGEST_VALUE, text).encode())


def fill(scene: Scene, placed: Placed, text: str) -> str:
    """The text of one member of its group; next and previous wrap around: permutations."""
    node = placed.node
    index, count = scene.index_of[node], scene.count(node)
    values = {
        "node": node,
        "group": scene.group_of[node],
        "index": index,
        "next": index % count + 1,
        "previous": (index - 2) % count + 1,
    }
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), text)
