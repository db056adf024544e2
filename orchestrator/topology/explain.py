"""The reference of one key, from the same model as docs/topology.md: `vnet explain links.wan.both.delay`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .document import File
from .key_reference import SECTIONS, default_of, value_of

Schema = dict[str, Any]
MOST_NEAR = 3


@dataclass(frozen=True)
class Entry:
    """A key: where it stands (`links.NAME.both.delay`), what may be written, and what stands below it."""

    path: str
    value: str
    default: str
    meaning: str
    keys: list[Entry] = field(default_factory=list)


class UnknownKeyError(Exception):
    """No such key; the text is the remedy."""


def explain(asked: str) -> list[Entry]:
    """What a path (`links.wan.both.delay`) or a key's name alone (`delay`) means; UnknownKeyError."""
    parts = [part for part in re.split(r"[.\[\]]+", asked) if part]
    found = _at(parts)
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
    """Every key's name once, for completion."""
    return sorted({key for _, schema in _sections() for key in schema.get("properties", ())})


@cache
def _whole() -> tuple[Schema, dict[str, Schema]]:
    schema = File.model_json_schema(by_alias=True)
    return schema, schema["$defs"]


def _sections() -> Iterator[tuple[str, Schema]]:
    """Every model of the file with the title of its section."""
    file, parts = _whole()
    yield "the file", file
    for name, schema in parts.items():
        yield SECTIONS.get(name, name.lower()), schema


def _at(parts: list[str]) -> list[Entry]:
    """The entries of a path from the top of the file; several where kinds of software share a key."""
    file, models = _whole()
    places: list[tuple[str, Schema, bool]] = [("", file, False)]
    for part in parts:
        places = [below for place in places for below in _below(place, part, models)]
    entries = [
        _entry(path.lstrip("."), schema, required, models) for path, schema, required in places if path
    ]
    return list({(entry.value, entry.meaning, entry.default): entry for entry in entries}.values())


def _below(place: tuple[str, Schema, bool], part: str, models: dict[str, Schema]) -> Iterator[Any]:
    path, schema, _ = place
    for model in _models(schema, models):
        if part in model.get("properties", {}):
            yield f"{path}.{part}", model["properties"][part], part in model.get("required", ())
        elif (inner := _values(model)) is not None and not part.isdigit():
            yield f"{path}.NAME", inner, False
        elif model.get("type") == "array" and "items" in model:
            if part.isdigit():
                yield f"{path}[]", model["items"], False
            else:
                yield from _below((f"{path}[]", model["items"], False), part, models)


def _models(schema: Schema, models: dict[str, Schema]) -> Iterator[Schema]:
    """The schemas that a value may be read by, references followed."""
    if "$ref" in schema:
        yield from _models(models[schema["$ref"].rsplit("/", 1)[-1]], models)
    elif options := schema.get("anyOf", schema.get("oneOf")):
        for option in options:
            yield from _models(option, models)
    else:
        yield schema


def _values(model: Schema) -> Schema | None:
    """Of a mapping by names of the user's own: what stands behind each."""
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
    return Entry(path, value_of(schema), default, meaning, list({key.path: key for key in keys}.values()))


def _keys(schema: Schema, models: dict[str, Schema], before: str = "") -> Iterator[Entry]:
    """What stands below a value; of a list in each of its elements, of a mapping by names below each name."""
    for model in _models(schema, models):
        needed = model.get("required", [])
        for name, value in model.get("properties", {}).items():
            yield _entry(before + name, value, name in needed)
        if model.get("type") == "array" and "items" in model:
            yield from _keys(model["items"], models, before)
        elif not before and (inner := _values(model)) is not None:
            yield from _keys(inner, models, "NAME.")


def _near(asked: str, parts: list[str]) -> str:
    """How far the path leads, and the keys that stand there which are nearest to the one that does not."""
    for length in range(len(parts) - 1, 0, -1):
        if found := _at(parts[:length]):
            names = [key.path for entry in found for key in entry.keys]
            return _remedy(f"{'.'.join(parts[:length])} has no key", parts[length], names)
    return _remedy("topology files have no key", parts[0] if parts else asked, known())


def _remedy(what: str, word: str, names: list[str]) -> str:
    near = difflib.get_close_matches(word[:80], names, MOST_NEAR, 0.6)
    if near:
        return f'{what} "{word}"; did you mean {", ".join(near)}?'
    listed = ", ".join(names) if len(names) <= 20 else "`vnet explain` lists those of the whole file"
    return f'{what} "{word}"; there are: {listed}' if names else f'{what} "{word}"'


def whole_file() -> list[Entry]:
    """The keys at the top of a topology file."""
    file, _ = _whole()
    return [
        _entry(name, value, name in file.get("required", ())) for name, value in file["properties"].items()
    ]
