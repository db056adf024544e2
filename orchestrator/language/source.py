"""Parses YAML to plain data with the line of every value; any input gives either data or a TopologyError.

Values follow YAML 1.2 (`yes` and `on` are text). Tags are errors, and a merge key is an ordinary key. Aliases
are expanded up to a limit, so that no small file becomes huge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from .problem import Problem, TopologyError, shown

Path = tuple[str | int, ...]

LARGEST_FILE = 1 << 20  # bytes; the largest topology of vNET has 4 kB
DEEPEST = 32  # largest depth of nested collections; the model needs 8
MOST_NODES = 50_000  # largest number of scalars and collections after aliases are expanded
KEPT = 16  # number of texts whose nodes are cached: a campaign reads its topologies once for each cell

_INT = re.compile(r"[-+]?[0-9]{1,19}")
_DIGITS = re.compile(r"[-+]?[0-9]+")  # longer numbers stay text, which the checks then refuse
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
# Half of a surrogate pair, such as YAML's \ud83d\ude00; invalid in UTF-8.
_HALF = re.compile("[\ud800-\udfff]")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data and, for every path in it, the line number of its key or item, counted from 1."""

    file: str
    data: Any
    lines: dict[Path, int]

    def problem(self, path: Path, value: str, rule: str, remedy: str) -> Problem:
        """Returns a Problem at the line of `path`, or of its nearest parent that the file has; line 1 if it
        has none.
        """
        at = path
        while at and at not in self.lines:
            at = at[:-1]
        return Problem(self.file, self.lines.get(at, 1), dotted(path), value, rule, remedy)


@dataclass(slots=True)
class _Node:
    kind: str  # scalar, map, list
    line: int
    value: Any = None
    items: list[tuple[_Node | None, _Node]] = field(default_factory=list)


def dotted(path: Path) -> str:
    """Writes a path as text: `("links", "wan", "between", 0)` becomes `links.wan.between[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(file: str, content: bytes) -> Document:
    """Parses one YAML document; raises TopologyError if the content is invalid, larger than 1 MiB, nested too
    deep, too large after aliases are expanded, or has tags or duplicate keys.
    """
    root = _compose(file, _decode(file, content))
    reader = _Reader(file)
    data = reader.plain(root, ())
    if reader.problems:
        raise TopologyError(reader.problems)
    return Document(file, data, reader.lines)


def _refuse(file: str, line: int, rule: str, remedy: str, value: str = "") -> TopologyError:
    return TopologyError([Problem(file, line, "", value, rule, remedy)])


def _decode(file: str, content: bytes) -> str:
    """Decodes the content; raises TopologyError if it is too large, not UTF-8, or empty."""
    if len(content) > LARGEST_FILE:
        raise _refuse(file, 1, f"is larger than {LARGEST_FILE} bytes", "split the experiment, or use groups")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refuse(file, line, "is not UTF-8 text", "save the file as UTF-8") from None
    if not text.strip():
        raise _refuse(file, 1, "is empty", "write at least `name`, `segments` and `nodes`")
    return text


def _events(file: str, text: str) -> Iterator[Any]:
    """Yields the YAML parser's events; any failure of the parser becomes a TopologyError."""
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(error.problem or error.context).split())
        raise _refuse(
            file,
            mark.line + 1 if mark else 1,
            f"is not YAML ({said})",
            "check indentation, quotes and colons",
        ) from None
    except (YAMLError, ValueError, AttributeError, NotImplementedError, RecursionError, KeyError) as error:
        # A plain exception, not MarkedYAMLError: bytes that YAML forbids, and inputs at which the library
        # itself fails.
        said = " ".join(str(error).split())[:120]
        raise _refuse(
            file, 1, f"is not YAML ({said})", "check for control characters and directives"
        ) from None


class _Composer:
    """Builds the node tree from parser events without recursion; raises TopologyError for tags, unknown
    aliases, nesting deeper than 32 and a second document.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: _Node | None = None
        self.stack: list[tuple[_Node, str | None]] = []  # open collections and their anchors
        self.key: list[_Node | None] = []  # for each open collection, the key that waits for its value
        self.anchors: dict[str, _Node] = {}

    def feed(self, event: Any) -> None:
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if kind == "AliasEvent":
            self._alias(event.anchor, line)
        elif kind == "ScalarEvent":
            self._untagged(event, line)
            if _HALF.search(event.value):
                rule, remedy = "holds half of a character", "write the character itself, or \\U with 8 digits"
                raise _refuse(self.file, line, rule, remedy, shown(event.value))
            plain = event.style in (None, "")
            node = _Node("scalar", line, _scalar(event.value) if plain else event.value)
            self._anchor(event.anchor, node)
            self._place(node)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, "map" if kind.startswith("M") else "list", line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            node, anchor = self.stack.pop()
            self.key.pop()
            self._anchor(anchor, node)
            self._place(node)
        elif kind == "DocumentStartEvent" and self.root is not None:
            raise _refuse(self.file, line, "holds a second document", "keep one topology in one file")

    def _open(self, event: Any, kind: str, line: int) -> None:
        self._untagged(event, line)
        if len(self.stack) >= DEEPEST:
            raise _refuse(self.file, line, f"is nested more than {DEEPEST} deep", "flatten it")
        self.stack.append((_Node(kind, line), event.anchor))
        self.key.append(None)

    def _untagged(self, event: Any, line: int) -> None:
        if event.tag is not None:
            raise _refuse(self.file, line, "YAML tags are not read", "remove the tag", shown(str(event.tag)))

    def _anchor(self, name: str | None, node: _Node) -> None:
        if name:
            self.anchors[name] = node

    def _alias(self, name: str, line: int) -> None:
        if name not in self.anchors:
            raise _refuse(
                self.file, line, "this alias has no anchor before it", f"define &{name} first", f"*{name}"
            )
        self._place(self.anchors[name])

    def _place(self, node: _Node) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1][0]
        if parent.kind == "list":
            parent.items.append((None, node))
        elif (key := self.key[-1]) is None:
            self.key[-1] = node
        else:
            parent.items.append((key, node))
            self.key[-1] = None


@lru_cache(KEPT)
def _compose(file: str, text: str) -> _Node:
    """Returns the node tree of a text. The tree is cached and must not be changed. Raises TopologyError for
    text that is not one YAML document.
    """
    composer = _Composer(file)
    for event in _events(file, text):
        composer.feed(event)
    if composer.root is None:
        raise _refuse(file, 1, "holds no document", "write at least `name`, `segments` and `nodes`")
    return composer.root


def _scalar(text: str) -> Any:
    """Returns the value of a plain scalar: null, boolean, number or text; an integer of more than 19 digits
    stays text.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) and not _DIGITS.fullmatch(text) else text


class _Reader:
    """Converts the node tree to plain data; collects problems of duplicate keys and keys that are not plain
    text.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self.count = 0

    def plain(self, node: _Node, path: Path) -> Any:
        self.count += 1
        if self.count > MOST_NODES or len(path) > DEEPEST:
            raise _refuse(
                self.file,
                node.line,
                f"its values and aliases expand to more than {MOST_NODES}",
                "write fewer, or use groups",
            )
        self.lines.setdefault(path, node.line)
        if node.kind == "scalar":
            return node.value
        if node.kind == "list":
            return [self.plain(item, (*path, i)) for i, (_, item) in enumerate(node.items)]
        return self._mapping(node, path)

    def _mapping(self, node: _Node, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, item in node.items:
            name = self._key(key, path)
            if name is None or key is None:
                continue
            here = (*path, name)
            if name in data:
                rule = f"stands twice, first in line {self.lines[here]}"
                self.problems.append(
                    Problem(self.file, key.line, dotted(here), "", rule, "remove one of them")
                )
                continue
            self.lines[here] = key.line
            data[name] = self.plain(item, here)
        return data

    def _key(self, key: _Node | None, path: Path) -> str | None:
        if key is None or key.kind != "scalar":
            line = key.line if key else 1
            rule = "a key must be plain text"
            self.problems.append(Problem(self.file, line, dotted(path), "", rule, "write `name: value`"))
            return None
        if key.value is None:
            return ""
        return str(key.value).lower() if isinstance(key.value, bool) else str(key.value)
