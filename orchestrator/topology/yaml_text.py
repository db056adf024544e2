"""Edits the text of a YAML file at the positions that its parser reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.nodes import MappingNode, ScalarNode

_ALIAS = re.compile(r"\s*:\s+\*[^\s,\]}]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """A key of a mapping with its value; `end` is the position in the text after the pair."""

    key: Any
    value: Any
    end: int

    @property
    def begin(self) -> int:
        return int(self.key.start_mark.index)

    @property
    def key_end(self) -> int:
        return int(self.key.end_mark.index)


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the text in [begin, end)."""

    begin: int
    end: int
    text: str


def pairs_of(text: str, node: Any) -> list[Pair]:
    if not isinstance(node, MappingNode):
        return []
    return [Pair(key, value, _pair_end(text, key, value)) for key, value in node.value]


def extends(text: str, target: Pair) -> bool:
    """Returns whether pairs can be added in the text to the value of `target`: it must be a mapping, and not
    an alias.
    """
    return isinstance(target.value, MappingNode) and _ALIAS.match(text, target.key_end) is None


def cut(text: str, holder: MappingNode, pair: Pair) -> Edit:
    """Returns the edit that removes a pair from a mapping in braces, with the comma before it; for the first
    pair, with the comma after it.
    """
    before = [one for one in pairs_of(text, holder) if one.begin < pair.begin]
    if before:
        return Edit(before[-1].end, pair.end, "")
    after = min((one.begin for one in pairs_of(text, holder) if one.begin > pair.begin), default=pair.end)
    return Edit(pair.begin, after, "")


def lines_of(text: str, pair: Pair) -> tuple[int, int]:
    """Returns the positions from the comment lines directly above a pair to the end of its last line."""
    begin = text.rfind("\n", 0, pair.begin) + 1
    comment = re.compile(" " * int(pair.key.start_mark.column) + "#[^\n]*\n")
    while begin and comment.fullmatch(text, above := text.rfind("\n", 0, begin - 1) + 1, begin):
        begin = above
    end = text.find("\n", pair.end)
    return begin, len(text) if end < 0 else end + 1


def indented(lines: str, more: int) -> str:
    return "".join(" " * more + line if line.strip() else line for line in re.findall(r"[^\n]*\n", lines))


def spelled(key: ScalarNode, name: str) -> str:
    """Returns the new name in the quotes of the old one."""
    return f"{key.style}{name}{key.style}" if key.style in ("'", '"') else name


def _pair_end(text: str, key: Any, value: Any) -> int:
    """Returns the position after the text of a pair. For a block, the parser's own position is not usable,
    since it is the beginning of the next token.
    """
    if alias := _ALIAS.match(text, int(key.end_mark.index)):
        return alias.end()
    if isinstance(value, ScalarNode) or value.flow_style:
        end = int(value.end_mark.index)
    elif isinstance(value, MappingNode):
        end = pairs_of(text, value)[-1].end
    else:
        end = _item_end(text, value.value[-1])
    return len(text[:end].rstrip())


def _item_end(text: str, item: Any) -> int:
    """Returns the position after an item of a list in block style."""
    if isinstance(item, ScalarNode) or item.flow_style:
        return int(item.end_mark.index)
    return pairs_of(text, item)[-1].end if isinstance(item, MappingNode) else _item_end(text, item.value[-1])


def applied(text: str, edits: Any) -> str:
    for edit in sorted(edits, key=lambda one: (one.begin, one.end), reverse=True):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text
