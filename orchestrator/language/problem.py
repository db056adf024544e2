"""Describes mistakes in a topology: file, line, path, value, rule and remedy of each."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

LONGEST_VALUE = 60  # largest number of characters of a value that an error shows


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: file, line, path of the value, value, rule and remedy. `line` is 0 if the value is not in
    the file (such as a command line override).
    """

    file: str
    line: int
    path: str
    value: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        parts = [place, self.path, self.value, f"{self.rule}; {self.remedy}"]
        return ": ".join(_one_line(part) for part in parts if part)


def _one_line(text: str) -> str:
    """Returns the text with characters that cannot be printed escaped, since names in a file may hold any
    character.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class TopologyError(Exception):
    """Raised for an invalid topology; `problems` holds every mistake once, sorted by file and line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems), key=lambda p: (p.file, p.line, p.path, p.rule, p.value))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def shown(value: Any) -> str:
    """Returns a value in the form that an error shows: as JSON in one line, cut to 60 characters; for a
    collection, its kind and size.
    """
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 4] + '..."'


def closest(word: str, known: Iterable[str], *, what: str = "known", most: int = 12) -> str:
    """Returns the remedy for an unknown name: the nearest known name, or else the text `what` and a list of
    the first `most` names.
    """
    names = sorted(set(known))
    if near := difflib.get_close_matches(word[:80], names, n=1, cutoff=0.6):
        return f'did you mean "{near[0]}"?'
    listed = ", ".join(names[:most]) + (" ..." if len(names) > most else "")
    return f"{what}: {listed}" if names else f"{what}: none"
