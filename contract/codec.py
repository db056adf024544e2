"""Converts frozen dataclasses to JSON and back; imports the standard library only."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
from collections.abc import Callable
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
RARE = {"rare": True}  # metadata of a field that is written only if it differs from its default


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Returns the JSON text of a tree of dataclasses and plain values. Keys are sorted, so equal values give
    equal bytes.
    """
    return json.dumps(value, indent=indent, sort_keys=True, default=_fields)


def _fields(value: Any) -> dict[str, Any]:
    """Returns the fields of one dataclass by name, without RARE ones that have their default. Their values
    are not copied or converted.
    """
    found = {name: getattr(value, name) for name in _names(type(value))}  # type: ignore[arg-type]  # classes are hashable
    for name, default in _left_out(type(value)):  # type: ignore[arg-type]  # classes are hashable
        if found[name] == default:
            del found[name]
    return found


@functools.cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


@functools.cache
def _left_out(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Returns the fields that are not written with their default, by the metadata RARE, with that default."""
    return tuple(
        (field.name, field.default)
        for field in dataclasses.fields(cls)
        if RARE.items() <= field.metadata.items()
    )


def plain(value: object) -> dict[str, Any]:
    """Returns a dataclass as the dictionary that its JSON text contains: tuples become lists."""
    found: dict[str, Any] = json.loads(to_json(value))
    return found


def from_json(cls: type[T], text: str) -> T:
    """Returns the value of type `cls` that `to_json` wrote, as `build` does; ValueError if the text is no
    JSON.
    """
    return build(cls, json.loads(text))


def build(cls: type[T], data: Any) -> T:
    """Returns a value of type `cls` made from plain JSON data. Names of fields in files of earlier versions
    (`RETIRED` of the class) and other forms of them (`earlier` of the class) are translated; fields with
    defaults may be absent.

    Raises TypeError for unknown or missing fields. Strings, numbers and booleans are not checked.
    """
    make: Callable[[Any], T] = _builder(cls)  # type: ignore[arg-type]  # classes are hashable
    return make(data)


@functools.cache
def _builder(hint: Any) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(hint):
        return _dataclass_builder(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = _builder(next(a for a in args if a is not type(None)))
        return inner if inner is _unchanged else lambda data: None if data is None else inner(data)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            item = _builder(args[0])
            return tuple if item is _unchanged else lambda data: tuple(map(item, data))
        items = [_builder(a) for a in args]
        return lambda data: tuple(b(d) for b, d in zip(items, data, strict=True))
    if origin is dict:
        value = _builder(args[1])
        return lambda data: {key: value(one) for key, one in data.items()}
    if origin is Literal or hint in (Any, str, int, float, bool):
        return _unchanged
    raise TypeError(f"no JSON form for {hint!r}")


def _unchanged(data: Any) -> Any:
    """Returns the value unchanged; the builder of types that JSON has. The other builders recognise this
    function and do not call it.
    """
    return data


def _dataclass_builder(cls: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(cls)
    names = set(_names(cls))
    builders = {name: make for name in names if (make := _builder(hints[name])) is not _unchanged}
    retired: dict[str, str] = getattr(cls, "RETIRED", {})  # names of fields in files of earlier versions
    earlier: Callable[[Any], Any] = getattr(
        cls, "earlier", _unchanged
    )  # converts the form of earlier versions

    def build_one(data: Any) -> Any:
        data = earlier(data)
        if retired:
            data = {retired.get(key, key): value for key, value in data.items()}
        if unknown := data.keys() - names:
            raise TypeError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
        made = {key: make(data[key]) for key, make in builders.items() if key in data}
        return cls(**{**data, **made})

    return build_one
