"""Defines a figure that a reader finds in a program's log, and what readers share: units and line search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

TIME_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3}
KIBI = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TIME = re.compile(r"([0-9.]+)\s*(ns|us|µs|ms|s|m|h)")
_BYTES = re.compile(r"([0-9.]+)\s*([KMGT]?)i?B")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value that a program printed. `name` is that of the metric without `program_`, `line` the number of
    the log's line that has it, `part` the part of the format (`contract.figures`).
    """

    name: str
    value: float
    line: int
    n: int = 1
    low: float | None = None
    high: float | None = None
    part: str = ""
    method: str = ""  # how the reader computed the value; empty for a printed value


class UnreadError(ValueError):
    """Raised for a log that does not have its stated format. line: the first line that shows it; rule: what
    is missing.
    """

    def __init__(self, line: int, rule: str) -> None:
        self.line, self.rule = line, rule
        super().__init__(f"line {line}: {rule}")


Reader = Callable[[Sequence[str]], list[Figure]]  # the lines of a log, without line ends


def find(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yields (line number, match) of each line that has the pattern."""
    for number, line in enumerate(lines, 1):
        if (found := pattern.search(line)) is not None:
            yield number, found


def need(lines: Sequence[str], pattern: re.Pattern[str], rule: str) -> tuple[int, re.Match[str]]:
    """Returns the only line with the pattern; raises UnreadError if none or several have it, because two
    runs of a program in one log have no common figure.
    """
    found = list(find(lines, pattern))
    if not found:
        raise UnreadError(len(lines), rule)
    if len(found) > 1:
        raise UnreadError(found[1][0], "a second output of the program begins; one log has one output")
    return found[0]


def ms(text: str) -> float:
    """Returns a time such as "1.03ms" or "466.64us" in ms; raises ValueError for other texts."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is no time')
    return float(found[1]) * TIME_MS[found[2]]


def size_bytes(text: str) -> float:
    """Returns a size such as "793.17KB", with K = 1024 as wrk, h2load and ab count, in bytes; raises
    ValueError for other texts.
    """
    found = _BYTES.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is no size')
    return float(found[1]) * KIBI[found[2]]


def number(value: Any, line: int, what: str) -> float:
    """Returns a number of a JSON document; raises UnreadError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadError(line, f"{what} is no number")
    return float(value)
