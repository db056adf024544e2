"""Expands NODES on the command line (names, groups, ranges, globs) to node names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

_RANGES = re.compile(r"\[([^\[\]]*)\]")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_SHOWN = 5  # names spelled out in a sentence
_MOST = 100_000  # alternatives of one pattern, so that a typing mistake cannot fill the memory


class PatternError(ValueError):
    """A pattern that is malformed or matches nothing; the text lists the existing nodes."""


def expand(patterns: str, groups: Mapping[str, str]) -> list[str]:
    """Names of the nodes that match `patterns`, in the lab's order, each once.

    `groups` has the group of each node, in the lab's order. Every part must match, and every number of a
    range, since a command that reaches fewer nodes than it names is a wrong experiment. Raises PatternError.
    """
    chosen: set[str] = set()
    for part in split(patterns):
        chosen |= _one(part, groups)
    return [name for name in groups if name in chosen]


def several(names: Sequence[str]) -> str:
    """Names in a sentence: the first few, and how many more."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def split(patterns: str) -> list[str]:
    """The parts of a comma list; commas inside brackets belong to the range."""
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", patterns)]
    if not all(parts):
        raise PatternError(f'nodes: "{patterns}": a part is empty; write for example "broker,client[1-20]"')
    return parts


def _one(part: str, groups: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    missing = []
    for text in alternatives(part):
        matched = _match(text, groups)
        found |= matched
        if not matched:
            missing.append(text)
    if missing:
        raise PatternError(_unmatched(part, missing, groups))
    return found


def _match(text: str, groups: Mapping[str, str]) -> set[str]:
    if text in groups:
        return {text}
    if "*" in text or "?" in text:
        return {name for name in groups if fnmatch.fnmatchcase(name, text)}
    return {name for name, group in groups.items() if group == text}


def alternatives(part: str) -> list[str]:
    """`m[1-2]x[7,9]` as m1x7, m1x9, m2x7, m2x9; a leading zero fixes the width: [01-10] is 01 ... 10."""
    if part.count("[") != part.count("]") or "[" in _RANGES.sub("", part) or "]" in _RANGES.sub("", part):
        raise PatternError(f'nodes: "{part}": brackets do not pair; a range is written client[1-20]')
    pieces = _RANGES.split(part)
    spans = [_numbers(piece, part) if k % 2 else [piece] for k, piece in enumerate(pieces)]
    size = 1
    for span in spans:
        size *= len(span)
    if size > _MOST:
        raise PatternError(f'nodes: "{part}": {size} names; at most {_MOST} can be written as one range')
    return ["".join(combination) for combination in product(*spans)]


def _numbers(text: str, part: str) -> list[str]:
    numbers: list[str] = []
    for span in text.split(","):
        match = _SPAN.fullmatch(span.strip())
        if not match:
            raise PatternError(f'nodes: "{part}": "[{text}]" is not a range; write [1-20] or [1-5,8]')
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low):
            raise PatternError(f'nodes: "{part}": the range {low}-{high} runs backwards; write {high}-{low}')
        if int(high) - int(low) >= _MOST:
            raise PatternError(f'nodes: "{part}": the range {low}-{high} has more than {_MOST} numbers')
        width = len(low) if low.startswith("0") else 0
        numbers += [str(number).zfill(width) for number in range(int(low), int(high) + 1)]
    return numbers


def _unmatched(part: str, missing: list[str], groups: Mapping[str, str]) -> str:
    lacking = "" if missing == [part] else f" ({_some(missing)})"
    return f'nodes: "{part}": no such node or group{lacking}; nodes: {describe(groups)}'


def describe(groups: Mapping[str, str]) -> str:
    """The names that exist: single nodes, and groups with their first and last node."""
    members: dict[str, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, []).append(name)
    said = []
    for group, names in members.items():
        if names == [group]:
            said.append(group)
        else:
            said.append(
                f"{group} ({names[0]} ... {names[-1]})" if len(names) > 1 else f"{group} ({names[0]})"
            )
    return _some(said, 12) or "none"


def _some(names: Iterable[str], most: int = _SHOWN) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
