"""Reads files of other tools: bounded, and never from a pipe or a device."""

from __future__ import annotations

from pathlib import Path

from ..language.problem import Problem, TopologyError
from ..language.source import LARGEST_FILE
from ..topology.loading import read_bytes


def bounded(path: Path) -> bytes:
    """The file's content; TopologyError where it cannot be read, or is larger than what is read."""
    content = read_bytes(path)
    if len(content) > LARGEST_FILE:
        rule = f"is larger than {LARGEST_FILE} bytes"
        raise TopologyError([Problem(str(path), 0, "", "", rule, "name a smaller file")])
    return content


def utf8(path: Path) -> str:
    """The file's text; TopologyError with the line that is not UTF-8."""
    content = bounded(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        rule, remedy = "is not UTF-8 text", "save the file as UTF-8"
        raise TopologyError([Problem(str(path), line, "", "", rule, remedy)]) from None


def script(path: Path) -> str:
    """A script's or configuration's text: bytes that are no UTF-8 (in a comment) are replaced."""
    return bounded(path).decode("utf-8-sig", "replace")
