"""Renames retired keys of a topology file to their present names, and keeps comments and layout.

The text is edited at the positions that the YAML parser reports. The result is then read again: it must hold
the same topology and comments, without a retired key. Otherwise MigrateError has the reason, and nothing is
rewritten.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import ReusedAnchorWarning
from ruamel.yaml.nodes import MappingNode, SequenceNode

from ..language.problem import TopologyError
from ..language.source import read_document
from . import retired
from .loading import parse
from .yaml_text import Edit, Pair, applied, cut, extends, indented, lines_of, pairs_of, spelled

BY_HAND = "write the present keys by hand"
BYTE_ORDER_MARK = "\ufeff"  # the parser's positions do not count this mark


class MigrateError(Exception):
    """Raised if keys cannot be rewritten; the text gives the place and the remedy."""


def migrated(file: str, content: bytes, overrides: Mapping[str, Any] | None = None) -> bytes:
    """Returns the content with present keys; the same bytes if it has no retired key.

    Raises TopologyError for a file with mistakes, MigrateError for a form that cannot be rewritten.
    """
    document = read_document(file, content)
    if not any(retired.uses(document.data)):
        return content
    before = parse(file, content, overrides)
    mark = BYTE_ORDER_MARK if content.decode().startswith(BYTE_ORDER_MARK) else ""
    text = content.decode().removeprefix(mark)
    try:
        found = (mark + _rewritten(file, text)).encode()
        after = parse(file, found, overrides)
    except TopologyError as error:
        raise MigrateError(f"{file}: cannot be rewritten ({error}); {BY_HAND}") from None
    if after.notes or after.model != before.model or found.count(b"#") != content.count(b"#"):
        raise MigrateError(f"{file}: rewritten, it would lose something; {BY_HAND}")
    return found


def _rewritten(file: str, text: str) -> str:
    """Renames keys first, then moves the keys that belong in another mapping, one mapping at a time."""
    edits = {
        (edit.begin, edit.end): edit
        for use, pair in _found(text)
        if len(use.key.new) == 1
        for edit in [Edit(pair.begin, pair.key_end, spelled(pair.key, use.key.new[0]))]
    }
    text = applied(text, edits.values())
    while (holder := _first_holder(text)) is not None:
        text = _nested(file, text, *holder)
    return text


def _found(text: str) -> list[tuple[retired.Use, Pair]]:
    root = _composed(text)
    document = read_document("", text.encode())
    found = []
    for use in retired.uses(document.data):
        node = root
        for part in use.at:
            node = _child(text, node, part)
        found.append((use, _pair(text, node, use.key.old)))
    return found


def _composed(text: str) -> Any:
    with warnings.catch_warnings():
        # YAML allows a repeated anchor; the last one counts
        warnings.simplefilter("ignore", ReusedAnchorWarning)
        return YAML(typ="safe", pure=True).compose(text)


def _pair(text: str, node: Any, name: str) -> Pair:
    found = next((pair for pair in pairs_of(text, node) if pair.key.value == name), None)
    if found is None:
        raise MigrateError(f"`{name}` is not found where it is written; {BY_HAND}")
    return found


def _child(text: str, node: Any, name: str | int) -> Any:
    if isinstance(node, SequenceNode):
        return node.value[name]
    return _pair(text, node, str(name)).value


def _first_holder(text: str) -> tuple[MappingNode, str, list[Pair], list[str]] | None:
    """Returns the first mapping with retired keys that now belong in a nested mapping: (mapping, name of the
    nested mapping, pairs, their new names); None if there is none.
    """
    nested = [(use, pair) for use, pair in _found(text) if len(use.key.new) > 1]
    if not nested:
        return None
    at, into = nested[0][0].at, nested[0][0].key.new[0]
    of_it = [(use, pair) for use, pair in nested if use.at == at and use.key.new[0] == into]
    of_it.sort(key=lambda one: one[1].begin)
    node = _composed(text)
    for part in at:
        node = _child(text, node, part)
    return node, into, [pair for _, pair in of_it], [use.key.new[1] for use, _ in of_it]


def _nested(file: str, text: str, holder: MappingNode, into: str, pairs: list[Pair], names: list[str]) -> str:
    """Returns the text with the pairs moved into the mapping `into`, which is created at the first pair if it
    is missing.
    """
    target = next((pair for pair in pairs_of(text, holder) if pair.key.value == into), None)
    if holder.flow_style:
        return _in_line(text, holder, into, pairs, names, target)
    if target is not None and not extends(text, target):
        line = text.count("\n", 0, target.begin) + 1
        raise MigrateError(f"{file}:{line}: `{into}` is written in a form that takes no key; {BY_HAND}")
    return _in_block(text, into, pairs, names, target)


def _in_line(
    text: str, holder: MappingNode, into: str, pairs: list[Pair], names: list[str], target: Pair | None
) -> str:
    parts = [
        spelled(pair.key, name) + text[pair.key_end : pair.end]
        for pair, name in zip(pairs, names, strict=True)
    ]
    if target is not None:
        edits = [cut(text, holder, pair) for pair in pairs]
        first = int(target.value.start_mark.index) + 1
        return applied(text, [*edits, Edit(first, first, "".join(f"{part}, " for part in parts))])
    edits = [cut(text, holder, pair) for pair in pairs[1:]]
    whole = f"{spelled(pairs[0].key, into)}: {{{', '.join(parts)}}}"
    return applied(text, [*edits, Edit(pairs[0].begin, pairs[0].end, whole)])


def _in_block(text: str, into: str, pairs: list[Pair], names: list[str], target: Pair | None) -> str:
    """Moves whole lines: each pair with the comment behind it and the comment lines directly above it."""
    indent = " " * int(pairs[0].key.start_mark.column)
    renamed, edits = [], []
    for pair, name in zip(pairs, names, strict=True):
        begin, end = lines_of(text, pair)
        key_end = pair.key_end
        line_begin = text.rfind("\n", 0, pair.begin) + 1
        moved = text[begin:line_begin] + indent + spelled(pair.key, name) + text[key_end:end]
        renamed.append(moved if moved.endswith("\n") else f"{moved}\n")
        edits.append(Edit(begin, end, ""))
    if target is not None and target.value.flow_style:
        inner = ", ".join(
            spelled(pair.key, name) + text[pair.key_end : pair.end]
            for pair, name in zip(pairs, names, strict=True)
        )
        first = int(target.value.start_mark.index) + 1
        return applied(text, [*edits, Edit(first, first, f"{inner}, ")])
    if target is not None:
        inside = int(target.value.start_mark.column)
        first = text.rfind("\n", 0, int(target.value.start_mark.index)) + 1
        below = "".join(indented(one, inside - len(indent)) for one in renamed)
        return applied(text, [*edits, Edit(first, first, below)])
    newline = "\r\n" if "\r\n" in text else "\n"
    first_line, _ = lines_of(text, pairs[0])
    if len(pairs) == 1 and _short(text, pairs[0]):
        value = text[pairs[0].key_end : pairs[0].end]
        whole = f"{spelled(pairs[0].key, into)}: {{{spelled(pairs[0].key, names[0])}{value}}}"
        return applied(text, [Edit(pairs[0].begin, pairs[0].end, whole)])
    head = f"{indent}{spelled(pairs[0].key, into)}:{newline}"
    below = head + "".join(indented(one, 2) for one in renamed)
    return applied(text, [*edits, Edit(first_line, first_line, below)])


def _short(text: str, pair: Pair) -> bool:
    """Returns whether a pair fits into braces: its value is a list in brackets on one line."""
    value = pair.value
    plain = isinstance(value, SequenceNode) and bool(value.flow_style)
    return plain and "\n" not in text[pair.begin : pair.end]
