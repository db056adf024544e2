"""Reads data files next to a topology and describes mistakes in them with file and line."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from pydantic import BeforeValidator

from .problem import Problem
from .scalars import fail
from .source import Document, Path

LARGEST_BYTES = 64 << 20


class TextBeside(str):
    """The name of a file next to a topology, with the file's text as an attribute. readable: False if the
    file could not be read; the text is then empty.
    """

    text: str
    readable: bool

    def __new__(cls, name: str, text: str | None) -> TextBeside:
        made = super().__new__(cls, name)
        made.text, made.readable = text or "", text is not None
        return made


def named_file(example: str) -> BeforeValidator:
    """Returns a validator that accepts only None and a TextBeside, whose file was read when the topology was
    loaded; `example` is the form that the error shows.
    """

    def read(value: Any) -> Any:
        if value is None or isinstance(value, TextBeside):
            return value
        raise fail("is not the name of a file", f"write for example {example}")

    return BeforeValidator(read, json_schema_input_type=str | None)


class LineError(Exception):
    """A mistake in one line of a data file: line number, value, rule and remedy."""

    def __init__(self, line: int, value: str, rule: str, remedy: str) -> None:
        super().__init__(f"{line}: {value}: {rule}; {remedy}")
        self.line, self.value, self.rule, self.remedy = line, value, rule, remedy

    def problem(self, file: FilePath, key: str) -> Problem:
        """Returns the mistake as a Problem; `key` is the topology's key that names the file."""
        return Problem(str(file), self.line, key, self.value, self.rule, self.remedy)


def file_beside(document: Document, name: str) -> FilePath:
    """Returns the path of the file `name` in the topology's directory; an absolute name stays unchanged."""
    return FilePath(document.file).parent / name


def text_of(file: FilePath, document: Document, path: Path, problems: list[Problem]) -> str | None:
    """Returns the file's text; None, and a problem at `path` of the topology, if it cannot be read, is not
    UTF-8, or is larger than 64 MiB.
    """
    try:
        if file.stat().st_size <= LARGEST_BYTES:
            return file.read_text(encoding="utf-8")
        rule, remedy = f"is larger than {LARGEST_BYTES >> 20} MiB", "write fewer lines"
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        rule, remedy = f"cannot be read ({why})", "name a text file beside this one"
    problems.append(document.problem(path, str(file), rule, remedy))
    return None
