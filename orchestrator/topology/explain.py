"""Looks up topology keys for `vnet explain`, in the same model as docs/topology.md."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .document import File
from .key_reference import SECTIONS, default_of, value_of
from .retired import TABLE

Schema = dict[str, Any]
Place = tuple[str, Schema, bool]  # path of a key, schema of its value, whether the key is required
NAME = "NAME"  # stands in a path for any name that the user chooses
MOST_NEAR = 3


@dataclass(frozen=True)
class Entry:
    """A topology key: its path (`links.NAME.both.delay`), allowed values, default, meaning, and the keys
    below it.
    """

    path: str
    value: str
    default: str
    meaning: str
    keys: list[Entry] = field(default_factory=list)


class UnknownKeyError(Exception):
    """Raised if topology files have no such key; the text is the remedy."""


def explain(asked: str) -> list[Entry]:
    """Returns the entries of a path (`links.wan.both.delay`), of the end of a path, or of a key alone; raises
    UnknownKeyError.
    """
    parts = [part for part in re.split(r"[.\[\]]+", asked) if part]
    found = _at(parts) or _ending(parts)
    if not found and len(parts) == 1:
        found = [
            _entry(f"{parts[0]} ({title})", value, parts[0] in schema.get("required", ()))
            for title, schema in _sections()
            for key, value in schema.get("properties", {}).items()
            if key == parts[0]
        ]
    if not found:
        raise UnknownKeyError(_near(asked, parts))
    return found


def known() -> list[str]:
    """Returns all key names, for shell completion."""
    return sorted({key for _, schema in _sections() for key in schema.get("properties", ())})


@cache
def _whole() -> tuple[Schema, dict[str, Schema]]:
    schema = File.model_json_schema(by_alias=True)
    return schema, schema["$defs"]


def _sections() -> Iterator[tuple[str, Schema]]:
    """Yields every model of the file's schema, with the title of its section."""
    file, parts = _whole()
    yield "the file", file
    for name, schema in parts.items():
        yield SECTIONS.get(name, name.lower()), schema


def _at(parts: list[str]) -> list[Entry]:
    """Returns the entries of a path from the top of the file; several if kinds of software share a key."""
    file, models = _whole()
    places: list[Place] = [("", file, False)]
    for part in parts:
        places = [below for place in places for below in _below(place, part, models)]
    entries = [
        _entry(path.lstrip("."), schema, required, models) for path, schema, required in places if path
    ]
    return _distinct(entries)


def _ending(parts: list[str]) -> list[Entry]:
    """Returns the entries with the shortest paths that end in these parts, ignoring the user's own names; if
    there are none, those of `_below_the_last`. Returns nothing for a single part.
    """
    if len(parts) < 2:
        return []
    _, models = _whole()
    found: dict[str, tuple[int, Place]] = {}
    for place in _everywhere():
        keys = [key for key in place[0].strip(".").split(".") if key != NAME]
        if keys[-len(parts) :] == parts:
            found.setdefault(place[0], (len(keys), place))
    if not found:
        return _below_the_last(parts)
    least = min(length for length, _ in found.values())
    return _distinct(
        _entry(path.lstrip("."), schema, required, models)
        for length, (path, schema, required) in found.values()
        if length == least
    )


def _below_the_last(parts: list[str]) -> list[Entry]:
    """Returns the entries of a path that begins with a key below the top level."""
    _, models = _whole()
    starts = {place[0]: place for place in _everywhere() if place[0].endswith(f".{parts[0]}")}
    places = list(starts.values())
    for part in parts[1:]:
        places = [below for place in places for below in _below(place, part, models)]
    return _distinct(_entry(path.lstrip("."), schema, required, models) for path, schema, required in places)


def _distinct(entries: Iterable[Entry]) -> list[Entry]:
    """Returns the entries, without later ones that have the same value, meaning and default; of `nodes` and
    `groups`, this leaves those of `nodes`.
    """
    found: dict[tuple[str, str, str], Entry] = {}
    for entry in entries:
        found.setdefault((entry.value, entry.meaning, entry.default), entry)
    return list(found.values())


@cache
def _everywhere() -> tuple[Place, ...]:
    """Returns every key of the file with its path; does not enter a model again inside itself."""
    file, models = _whole()
    found: list[Place] = []

    def walk(path: str, schema: Schema, required: bool, inside: tuple[str, ...]) -> None:
        if path:
            found.append((path, schema, required))
        name = schema.get("$ref", "")
        if name in inside:
            return
        for model in _models(schema, models):
            needed = model.get("required", ())
            for key, value in model.get("properties", {}).items():
                walk(f"{path}.{key}", value, key in needed, (*inside, name) if name else inside)
            if (inner := _values(model)) is not None:
                walk(f"{path}.{NAME}", inner, False, (*inside, name) if name else inside)
            if model.get("type") == "array" and "items" in model:
                walk(f"{path}[]", model["items"], False, (*inside, name) if name else inside)

    walk("", file, False, ())
    return tuple(found)


def _below(place: Place, part: str, models: dict[str, Schema]) -> Iterator[Any]:
    path, schema, _ = place
    for model in _models(schema, models):
        if part in model.get("properties", {}):
            yield f"{path}.{part}", model["properties"][part], part in model.get("required", ())
        elif (inner := _values(model)) is not None and not part.isdigit():
            yield f"{path}.{NAME}", inner, False
        elif model.get("type") == "array" and "items" in model:
            if part.isdigit():
                yield f"{path}[]", model["items"], False
            else:
                yield from _below((f"{path}[]", model["items"], False), part, models)


def _models(schema: Schema, models: dict[str, Schema]) -> Iterator[Schema]:
    """Yields the schemas that a value can follow, with references and alternatives resolved."""
    if "$ref" in schema:
        yield from _models(models[schema["$ref"].rsplit("/", 1)[-1]], models)
    elif options := schema.get("anyOf", schema.get("oneOf")):
        for option in options:
            yield from _models(option, models)
    else:
        yield schema


def _values(model: Schema) -> Schema | None:
    """Returns the value schema of a mapping whose keys are the user's own names; None for another schema."""
    inner = model.get("additionalProperties")
    if isinstance(inner, dict):
        return inner
    patterns = list(model.get("patternProperties", {}).values())
    return patterns[0] if patterns else None


def _entry(path: str, schema: Schema, required: bool, models: dict[str, Schema] | None = None) -> Entry:
    keys = list(_keys(schema, models)) if models is not None else []
    default = "required" if required else default_of(schema)
    meaning = schema.get("description", "")
    if not meaning and models is not None:
        meaning = " Or: ".join(
            dict.fromkeys(m["description"] for m in _models(schema, models) if "description" in m)
        )
    return Entry(path, value_of(schema), default, meaning, _merged(keys))


def _merged(keys: list[Entry]) -> list[Entry]:
    """Returns one entry for each key, which joins the texts of all kinds of software that share the key."""
    of_path: dict[str, list[Entry]] = {}
    for key in keys:
        of_path.setdefault(key.path, []).append(key)

    def said(entries: list[Entry], word: str, between: str) -> str:
        return between.join(dict.fromkeys(text for one in entries if (text := getattr(one, word))))

    return [
        Entry(
            path, said(same, "value", " or "), said(same, "default", " or "), said(same, "meaning", " Or: ")
        )
        for path, same in of_path.items()
    ]


def _keys(schema: Schema, models: dict[str, Schema], before: str = "") -> Iterator[Entry]:
    """Yields the keys below a value: for a list, the keys of an element; for a mapping by name, the keys
    below each name.
    """
    for model in _models(schema, models):
        needed = model.get("required", [])
        for name, value in model.get("properties", {}).items():
            yield _entry(before + name, value, name in needed)
        if model.get("type") == "array" and "items" in model:
            yield from _keys(model["items"], models, before)
        elif not before and (inner := _values(model)) is not None:
            yield from _keys(inner, models, f"{NAME}.")


def _near(asked: str, parts: list[str]) -> str:
    """Returns the remedy for an unknown path: the key that replaces a retired one, the nearest keys below its
    longest known part, paths with another first key, or the nearest of all keys.
    """
    for key in TABLE:
        if parts and parts[-1] == key.old:
            return f'"{asked}" is retired; the key is {key.whole(key.new)} (`vnet migrate` rewrites files)'
    for length in range(len(parts) - 1, 0, -1):
        if found := _at(parts[:length]):
            names = [key.path for entry in found for key in entry.keys]
            return _remedy(f"{'.'.join(parts[:length])} has no key", parts[length], names)
    if near := _through(parts):
        return f'topology files have no key "{asked}"; did you mean {near}?'
    for first in difflib.get_close_matches(parts[0][:80], whole_names(), MOST_NEAR, 0.6) if parts[1:] else ():
        if found := _at([first, *parts[1:]]) or _ending([first, *parts[1:]]):
            paths = ", ".join(entry.path for entry in found)
            return f'topology files have no key "{asked}"; did you mean {paths}?'
    word = parts[0] if parts else asked
    if parts[1:] and word in known():
        return f'topology files have no key "{asked}"; `vnet explain {word}` explains "{word}"'
    return _remedy("topology files have no key", word, known())


def _through(parts: list[str]) -> str:
    """Returns the shortest path that has these parts in this order, with others between them; "" if there is
    none or for a single part.
    """

    def has(path: str) -> bool:
        keys = iter(path.strip(".").split("."))
        return all(part in keys for part in parts)

    paths = [place[0].strip(".") for place in _everywhere() if parts[1:] and has(place[0])]
    return min(paths, key=lambda path: path.count("."), default="")


def _remedy(what: str, word: str, names: list[str]) -> str:
    near = difflib.get_close_matches(word[:80], names, MOST_NEAR, 0.6)
    if near:
        return f'{what} "{word}"; did you mean {", ".join(near)}?'
    listed = ", ".join(names) if len(names) <= 20 else "`vnet explain` lists those of the whole file"
    return f'{what} "{word}"; there are: {listed}' if names else f'{what} "{word}"'


def whole_names() -> list[str]:
    """Returns the names of the keys at the top of a topology file."""
    return [*_whole()[0]["properties"]]


def whole_file() -> list[Entry]:
    """Returns the entries of the keys at the top of a topology file."""
    file, _ = _whole()
    return [
        _entry(name, value, name in file.get("required", ())) for name, value in file["properties"].items()
    ]
