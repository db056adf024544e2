"""Provides values that only a running network could give, such as the output of a command. They behave like
empty ones; a use that decides or computes something by them is reported with the script's line.
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .said import SCRIPT, leave

# Methods whose result has the same source as the value, and methods that look into the value.
_KEEP = (
    "strip", "lstrip", "rstrip", "lower", "upper", "replace", "expandtabs", "title", "zfill", "ljust",
    "rjust",
    "__add__", "__mul__", "__sub__", "__truediv__", "__floordiv__", "__mod__", "__round__", "__neg__",
    "__abs__",
    "__rsub__", "__rmul__", "__rtruediv__",
)  # fmt: skip
_LOOK = (
    "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__len__", "__iter__",
    "__getitem__", "find", "rfind", "index", "rindex", "count", "startswith", "endswith", "split", "rsplit",
    "splitlines", "partition", "rpartition", "isdigit", "isdecimal", "isnumeric", "isalpha", "isspace",
    "is_integer",
)  # fmt: skip


class Unknown:
    """Base of the values; `source` says in a report where they come from."""

    source = ""

    def look(self) -> None:
        """Reports that the script depends on this value, with the line that it runs."""
        leave(f"the script depends on {self.source}, which is not known here: one way of it counts")


def _looking(kind: type, name: str) -> Callable[..., Any]:
    method = getattr(kind, name)

    def call(self: Any, *words: Any, **keys: Any) -> Any:
        self.look()
        return method(self, *words, **keys)

    return call


def _keeping(kind: type, name: str) -> Callable[..., Any]:
    method = getattr(kind, name)

    def call(self: Any, *words: Any, **keys: Any) -> Any:
        return like(method(self, *words, **keys), self)

    return call


def _if_empty(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: Any, *words: Any) -> Any:
        if not list.__len__(self):
            self.look()
        return method(self, *words)

    return call


# Functions that turn a value of a class here into one of its base, by the base.
_BARE: dict[type, Callable[[Any], Any]] = {
    str: str.__str__, bytes: lambda one: bytes.join(b"", [one]), int: int.__index__, float: float.__pos__,
    list: list.copy,
}  # fmt: skip


def _shown(value: Unknown, text: Any) -> Any:
    """Returns the text of a value; a text that a condition of the script makes of it is a use."""
    frame = sys._getframe(2)
    if frame.f_code.co_filename == SCRIPT[0]:
        line = linecache.getline(SCRIPT[0], frame.f_lineno).split()
        if line[:1] and (line[0] in ("if", "elif", "while", "assert") or "if" in line[1:]):
            value.look()
    return text


def _seen(kind: type, into: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(self: Any) -> Any:
        self.look()
        return into(_BARE[kind](self))

    return call


def _made(kind: type) -> type:
    """Returns a class of `kind` that is Unknown, too."""
    methods: dict[str, Any] = {one: _looking(kind, one) for one in _LOOK if hasattr(kind, one)}
    kept = [one for one in _KEEP if hasattr(kind, one) and (kind is not list)]
    methods |= {one: _keeping(kind, one) for one in kept}
    methods["__hash__"] = None if kind is list else kind.__hash__
    methods["__bool__"] = _seen(kind, bool)
    methods["__str__"] = lambda self: _shown(self, str(_BARE[kind](self)))
    methods["__format__"] = lambda self, spec: format(_shown(self, _BARE[kind](self)), spec)
    if kind is str:
        methods["__radd__"] = lambda self, left: like(left + str.__str__(self), self)
        methods["encode"] = lambda self, *_w, **_k: like(str.encode(self), self)
        methods |= {"__int__": _seen(kind, int), "__float__": _seen(kind, float)}
    elif kind is bytes:
        methods["decode"] = lambda self, *_w, **_k: like(bytes.decode(self), self)
    elif kind in (int, float):
        methods["__int__"] = _seen(kind, int)
        methods["__radd__"] = lambda self, left: like(left + self.bare(), self)
    elif kind is list:  # the parts of a list that has some are Unknown themselves
        for one in ("__iter__", "__getitem__"):
            methods[one] = _if_empty(one)
    methods["bare"] = lambda self: _BARE[kind](self)
    return type(f"Unknown{kind.__name__.capitalize()}", (Unknown, kind), methods)


_KINDS: dict[type, type] = {kind: _made(kind) for kind in (str, bytes, int, float, list)}


def unknown(value: Any, source: str) -> Any:
    """Returns a value like `value` (a text, bytes, a number or a list; others stay as they are) that is
    Unknown, of this source.
    """
    kind = _KINDS.get(int if type(value) is bool else type(value))
    if kind is None:
        return value
    made = kind(value)
    made.source = source
    return made


def like(value: Any, other: Unknown) -> Any:
    """Returns a value that was made from an Unknown one, with the same source."""
    return unknown(value, other.source)


class Output(Unknown):
    """The output of a process that is not run, as a stream without a line."""

    def __init__(self, empty: str | bytes, source: str) -> None:
        self.empty, self.source, self.closed = unknown(empty, source), source, False

    def read(self, *_words: Any) -> Any:
        """Returns an empty text or empty bytes."""
        return self.empty

    readline = read1 = read

    def readlines(self, *_words: Any) -> Any:
        """Returns no lines."""
        return unknown([], self.source)

    def __iter__(self) -> Iterator[Any]:
        self.look()
        return iter(())

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_error: Any) -> None:
        return None

    def close(self) -> None:
        """Does nothing."""

    def fileno(self) -> int:
        """Raises OSError: no file is behind it."""
        raise OSError("a process that is not run has no output")


class _Pattern:
    """A compiled pattern of the script, which reports a search in an Unknown text."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        return _searching(found) if callable(found) else found


def _searching(search: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(search)
    def call(*words: Any, **keys: Any) -> Any:
        for one in (*words, *keys.values()):
            if isinstance(one, Unknown):
                one.look()
        return search(*(one._made if isinstance(one, _Pattern) else one for one in words), **keys)

    return call


def watch_patterns() -> None:
    """Replaces the functions of `re` by ones that report a search in an Unknown text."""
    for name in ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"):
        setattr(re, name, _searching(getattr(re, name)))
    compiled = re.compile

    def compile_pattern(*words: Any, **keys: Any) -> Any:
        made = compiled(*words, **keys)
        return _Pattern(made) if sys._getframe(1).f_code.co_filename == SCRIPT[0] else made

    re.compile = compile_pattern
