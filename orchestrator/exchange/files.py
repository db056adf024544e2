"""Reads files of other tools, only regular ones and up to LARGEST_FILE bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import LARGEST_FILE
from ..topology.loading import read_bytes


def bounded(path: Path) -> bytes:
    """Returns the content of a regular file. Raises TopologyError if it cannot be read, is a pipe or a
    device, or is larger than LARGEST_FILE bytes.
    """
    content = read_bytes(path)
    if len(content) > LARGEST_FILE:
        rule = f"is larger than {LARGEST_FILE} bytes"
        raise TopologyError([Problem(str(path), 0, "", "", rule, "name a smaller file")])
    return content


class _Listed(list[Any]):
    """A list of a file, whose text is that of YAML."""

    def __str__(self) -> str:
        return f"[{', '.join(map(_word, self))}]"


class Mapped(dict[Any, Any]):
    """A mapping of a file, whose text is that of YAML."""

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}: {_word(value)}" for key, value in self.items()) + "}"


def _word(value: Any) -> str:
    words = {True: "true", False: "false"}
    return words[value] if isinstance(value, bool) else "null" if value is None else str(value)


def readable(value: Any) -> Any:
    """Returns a value of a file with lists and mappings that reports show as YAML shows them."""
    if isinstance(value, dict):
        return Mapped({key: readable(one) for key, one in value.items()})
    return _Listed(map(readable, value)) if isinstance(value, list) else value


def utf8(path: Path) -> str:
    """Returns the file's text without a byte order mark. Raises TopologyError as `bounded`, and with the line
    that is not UTF-8.
    """
    content = bounded(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        rule, remedy = "is not UTF-8 text", "save the file as UTF-8"
        raise TopologyError([Problem(str(path), line, "", "", rule, remedy)]) from None


def script(path: Path) -> str:
    """Returns the text of a script or configuration, without a byte order mark; replaces bytes that are not
    UTF-8 (in comments, for example) instead of refusing them. Raises TopologyError as `bounded`.
    """
    return bounded(path).decode("utf-8-sig", "replace")
