"""Parses shell scripts into syntax trees, by tree-sitter's grammar of bash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

LARGEST_SCRIPT = 1 << 20  # bytes, the limit of every file that is read
_NAME = re.compile(rb"[A-Za-z_]\w*|\d")


class ShellError(Exception):
    """Raised for a script that cannot be followed, with the line and the rule."""

    def __init__(self, line: int, rule: str) -> None:
        super().__init__(rule)
        self.line, self.rule = line, rule


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def parsed(text: str) -> Node:
    """Returns the script's tree; ShellError with the line of a syntax error, or if the
    script is too large.
    """
    content = text.encode()
    if len(content) > LARGEST_SCRIPT:
        raise ShellError(1, f"is larger than {LARGEST_SCRIPT} bytes")
    root = _parser().parse(content).root_node
    while torn := sorted(_torn(root, content), reverse=True):
        for start, end in torn:
            content = content[:start] + b"{" + content[start:end] + b"}" + content[end:]
        root = _parser().parse(content).root_node
    if root.has_error:
        raise ShellError(_wrong(root), "is no shell syntax that can be read")
    return root


def _torn(root: Node, content: bytes) -> Iterator[tuple[int, int]]:
    """Yields the place of each variable's name that the grammar reads as a word of its own, since another
    variable stands before it (`a$b$c.d`: `a$b$` and `c.d`); in braces it is read as the shell reads it.
    """
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        last = node.children[-1] if node.type == "concatenation" else None
        if last is not None and last.type == "$" and (name := _NAME.match(content, last.end_byte)):
            yield name.span()


def _wrong(root: Node) -> int:
    """Returns the first line with a syntax error."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            return line_of(node)
        waiting += [child for child in reversed(node.children) if child.has_error or child.is_missing]
    return line_of(root)


def line_of(node: Node) -> int:
    return int(node.start_point[0]) + 1


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
