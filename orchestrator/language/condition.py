"""Reads conditions: an expectation in one line of text, and amounts in the unit of a metric.

    latency_p99[class=site-a] < 500 ms
    throughput[link=wan] >= 9 Mbit/s during rain
    messages_received[class=site-a] > 100 eventually within 20 s
    delivered exactly-once [class=orders]
    log broker never "error"

A line becomes the mapping that a topology file has for the same expectation.
"""

from __future__ import annotations

import re
from typing import Any

from contract import chosen

from . import units

OPERATORS = {"<": "below", "<=": "at_most", ">": "above", ">=": "at_least"}
OPPOSITE = {"below": "at_least", "at_least": "below", "above": "at_most", "at_most": "above"}
EXAMPLE = 'write for example "latency_p99[class=control] < 500 ms"'
_SUBJECT = re.compile(r"\s*(delivered|log|event)\s+(\"[^\"]*\"|[^\s\[]+)\s*|\s*([a-z][a-z0-9_.]*)\s*")
_OF = re.compile(r"\[([^\]]*)\]\s*")
_CLAUSES = "during|after|within|every|always|eventually|never"
_BOUND = re.compile(rf"(<=|>=|<|>)\s*([-+]?[0-9.]+(?:\s*(?!(?:{_CLAUSES})\b)[a-zA-Z%/]+)?)\s*")
_CLAUSE = re.compile(rf"({_CLAUSES})\b\s*")
_WORD = re.compile(r"(\"[^\"]*\"|[^\s\[]+)\s*")
_DURATION = re.compile(r"([0-9.]+\s*[a-z]+)\s*")
_NUMBER_UNIT = re.compile(r"\s*([-+]?[0-9]+(?:\.[0-9]*)?|[-+]?\.[0-9]+)\s*(.*?)\s*")


def mapping(text: str) -> dict[str, Any]:
    """Returns the expectation in a line of text as the mapping that a topology file has; raises UnitError if
    the line is not understood, states something twice, or has `within` without `eventually`.
    """
    found = _SUBJECT.match(text)
    if found is None:
        raise units.UnitError("is no condition", EXAMPLE)
    data: dict[str, Any] = {found[1]: chosen.bare(found[2])} if found[1] else {"metric": found[3]}
    rest = text[found.end() :]
    bounds: dict[str, Any] = {}
    modes: dict[str, Any] = {}
    while rest:
        rest = _part(rest, data, bounds, modes)
    within = modes.pop("within", None)
    if within is not None and "eventually" not in modes:
        raise units.UnitError("`within` belongs to `eventually`", 'write "eventually within 20 s"')
    whole = bounds | ({} if within is None else {"within": within})
    for mode, pattern in modes.items():
        _add(data, mode, whole | ({} if pattern is None else {"text": pattern}) or True)
    if not modes:
        for key, bound in bounds.items():
            _add(data, key, bound)
    return data


def _part(rest: str, data: dict[str, Any], bounds: dict[str, Any], modes: dict[str, Any]) -> str:
    """Reads the first part of `rest` into the mappings; returns the rest of the line. Raises UnitError if the
    part is not understood.
    """
    if found := _OF.match(rest):
        try:
            given = list(chosen.keys(found[1]))
        except chosen.ChosenError as error:
            raise units.UnitError(error.rule, error.remedy) from None
        for key, name in given:
            _add(data, key, name)
    elif found := _BOUND.match(rest):
        _add(bounds, OPERATORS[found[1]], " ".join(found[2].split()))
    elif found := _CLAUSE.match(rest):
        word, rest = found[1], rest[found.end() :]
        if word in ("always", "eventually", "never"):
            pattern = _WORD.match(rest) if rest.startswith('"') or "log" in data else None
            _add(modes, word, chosen.bare(pattern[1]) if pattern else None)
            return rest[pattern.end() :] if pattern else rest
        follows = (_DURATION if word in ("within", "every") else _WORD).match(rest)
        if follows is None:
            raise units.UnitError(f"nothing follows `{word}`", EXAMPLE)
        _add(modes if word == "within" else data, word, chosen.bare(follows[1]))
        return rest[follows.end() :]
    else:
        raise units.UnitError(f'"{rest.strip()[:30]}" is not understood', EXAMPLE)
    return rest[found.end() :]


def _add(data: dict[str, Any], key: str, value: Any) -> None:
    if key in data:
        raise units.UnitError(f"`{key}` stands twice", "leave out one of them, or write two conditions")
    data[key] = value


def negated(data: dict[str, Any]) -> dict[str, Any]:
    """Returns the expectation that holds if the condition of `--fail-if` does not come true. Raises UnitError
    unless the condition has a metric and exactly one bound, and no always, eventually or never.
    """
    bounds = [key for key in OPPOSITE if key in data]
    if "metric" not in data or len(bounds) != 1 or {"always", "eventually", "never"} & data.keys():
        raise units.UnitError(
            "is not one bound on a metric", 'write for example "latency_p99[class=control] > 500 ms"'
        )
    (bound,) = bounds
    kept = {key: value for key, value in data.items() if key != bound}
    return kept | {OPPOSITE[bound]: data[bound]}


def amount(unit: str, value: Any) -> float:
    """Returns a bound as a number in `unit`, the unit of a metric; raises UnitError for a value that is not a
    number or has another unit.

    A time, a rate and a size need their unit; other values may have the metric's unit or none.
    """
    kind = _KINDS.get(unit)
    if kind is not None:
        quantity, factor = kind
        return float(units.parse(quantity, value)) / factor
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise units.UnitError("is no number", f'write for example "{_example(unit)}"')
    found = _NUMBER_UNIT.fullmatch(str(value))
    if found is None:
        raise units.UnitError("is no number", f'write for example "{_example(unit)}"')
    own = {"", unit, unit.split()[0]}
    if found[2] not in own:
        raise units.UnitError(
            f'is in "{found[2]}", the metric in {unit}', f'write for example "{_example(unit)}"'
        )
    return float(found[1])


def _example(unit: str) -> str:
    return f"5 {unit.split()[0]}" if unit.startswith("%") else "5"


# For each unit of a metric: the quantity in which a bound is written, and the size of the unit in the
# internal unit of that quantity.
_KINDS = {
    "us": (units.DURATION, 1e3),
    "ms": (units.DURATION, 1e6),
    "s": (units.DURATION, 1e9),
    "Mbit/s": (units.RATE, 1e6),
    "kB/s": (units.RATE, 8e3),
    "MB": (units.SIZE, 1e6),
    "bytes": (units.SIZE, 1.0),
}
