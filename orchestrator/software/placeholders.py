"""Placeholders in names that the file gives to what each client of a group sends."""

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


def fill(text: str, *, node: str, group: str, index: int, count: int) -> str:
    """The text of client `index` (from 1) of `count`; next and previous wrap around: permutations."""
    values = {
        "node": node,
        "group": group,
        "index": index,
        "next": index % count + 1,
        "previous": (index - 2) % count + 1,
    }
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), text)


def fill_for(scene: Scene, placed: Placed, text: str) -> str:
    """The text as the software of one node has it."""
    node = placed.node
    group, index, count = scene.group_of[node], scene.index_of[node], scene.count(node)
    return fill(text, node=node, group=group, index=index, count=count)
