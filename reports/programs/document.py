"""Finds the one JSON document in a log, which may be between other lines, and the line of each of its
keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reports.programs.reading import UnreadError


def document(lines: Sequence[str], keys: Sequence[str], program: str) -> tuple[dict[str, Any], int]:
    """Returns the first JSON object that begins at the start of a line and has all `keys`, and the number of
    its first line; raises UnreadError if there is none.
    """
    text, decoder = "\n".join(lines), json.JSONDecoder()
    at, broken = 0, 0
    for first, line in enumerate(lines, 1):
        if line.startswith("{"):
            try:
                found, _ = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                broken = broken or first
            else:
                if all(key in found for key in keys):
                    return found, first
        at += len(line) + 1
    if broken:
        raise UnreadError(broken, f"the JSON document that begins here does not end: no output of {program}")
    raise UnreadError(len(lines), f"no JSON document with {' and '.join(keys)}, as {program} writes it")


def line_of(lines: Sequence[str], first: int, key: str) -> int:
    """Returns the number of the first line from `first` on that has `"KEY":`, else `first`."""
    pattern = re.compile(rf'"{re.escape(key)}"\s*:')
    found = (number for number, line in enumerate(lines[first - 1 :], first) if pattern.search(line))
    return next(found, first)


def section(holder: Mapping[str, Any], key: str, line: int) -> Mapping[str, Any]:
    """Returns the object below a key, or an empty one if the key is missing; raises UnreadError for a value
    of another type.
    """
    found = holder.get(key, {})
    if not isinstance(found, dict):
        raise UnreadError(line, f"{key} is no object")
    return found
