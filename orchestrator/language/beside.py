"""Reads data files next to a topology and describes mistakes in them with file and line."""

from __future__ import annotations

from pathlib import Path as FilePath

from .problem import Problem
from .source import Document, Path

LARGEST_BYTES = 64 << 20


class TextBeside(str):
    """The name of a file next to a topology, with the file's text as an attribute."""

    text: str

    def __new__(cls, name: str, text: str) -> TextBeside:
        made = super().__new__(cls, name)
        made.text = text
        return made


class LineError(Exception):
    """A mistake in one line of a data file: line number, value, rule and remedy."""

    def __init__(self, line: int, value: str, rule: str, remedy: str) -> None:
        super().__init__(f"{line}: {value}: {rule}; {remedy}")
        self.line, self.value, self.rule, self.remedy = line, value, rule, remedy

    def problem(self, file: FilePath, key: str) -> Problem:
        """Returns the mistake as a Problem; `key` is the topology's key that names the file."""
        return Problem(str(file), self.line, key, self.value, self.rule, self.remedy)


def file_beside(document: Document, name: str) -> FilePath:
    """Returns the path of a file that the topology names, relative to the topology's directory."""
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
