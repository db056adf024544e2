"""Expands NODES on the command line (names, groups, ranges, globs) to node names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

_RANGES = re.compile(r"\[([^\[\]]*)\]")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_SHOWN = 5  # largest number of names in a sentence
_MOST = 100_000  # largest number of names of one pattern, so that a typing mistake does not fill the memory


class PatternError(ValueError):
    """Raised if a pattern is malformed or matches no node; in the second case the text lists the existing
    nodes.
    """


def expand(patterns: str, groups: Mapping[str, str]) -> list[str]:
    """Returns the names of the nodes that match `patterns`, in the lab's order, each once.

    groups: node -> its group, in the lab's order. Raises PatternError unless each part of the list and each
    number of a range matches a node, because a command that reaches fewer nodes than it names makes a wrong
    experiment.
    """
    chosen: set[str] = set()
    for part in split(patterns):
        chosen |= _one(part, groups)
    return [name for name in groups if name in chosen]


def several(names: Sequence[str]) -> str:
    """Returns names for a sentence: the first _SHOWN (five), and the number of the others."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def split(patterns: str) -> list[str]:
    """Splits a list at its commas, except those inside brackets; PatternError if a part is empty."""
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
    """Expands the ranges of a pattern: `m[1-2]x[7,9]` to m1x7, m1x9, m2x7, m2x9, and `[01-10]` to 01 ... 10.

    Raises PatternError if a range is malformed or if there are more than _MOST names.
    """
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
    """Returns at most 12 entries as text: single nodes, and groups with their first and last node. A last
    entry states the number of the others. Returns `none` without nodes.
    """
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
