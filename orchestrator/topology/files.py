"""Reads the files that the software of a topology names: certificates, keys, payloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..language.beside import TextBeside, file_beside, text_of
from ..language.problem import Problem
from ..language.source import Document, Path

# Keys of software, or of the mapping below its kind's key -> the keys in it that name a file.
_PLACES = {"tls": ("ca", "cert", "key"), "publish": ("file",)}


def expand(data: Any, document: Document, problems: list[Problem]) -> Any:
    """Returns the data in which each name of a file at software (`tls`: ca, cert, key; `publish`: file) is
    replaced by TextBeside, the name with the file's text. Reports files that cannot be read; their text is
    empty.
    """
    for section in ("nodes", "groups"):
        for name, machine in _mapping(_mapping(data).get(section)).items():
            for program, software in _mapping(_mapping(machine).get("software")).items():
                for place, values in _places(_mapping(software)):
                    keys = _PLACES[place[-1]]
                    if any(isinstance(values.get(key), str) for key in keys):
                        path = (section, name, "software", program, *place)
                        data = _with(data, path, _read(values, path, keys, document, problems))
    return data


def _places(software: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yields each mapping of the software that may name files, with its path."""
    for key, value in software.items():
        if key in _PLACES:
            yield (key,), _mapping(value)
        else:
            yield from (
                ((key, inner), _mapping(_mapping(value)[inner]))
                for inner in _PLACES
                if inner in _mapping(value)
            )


def _read(
    values: dict[str, Any], path: Path, keys: tuple[str, ...], document: Document, problems: list[Problem]
) -> dict[str, Any]:
    read = dict(values)
    for key in (key for key in keys if isinstance(values.get(key), str)):
        text = text_of(file_beside(document, values[key]), document, (*path, key), problems)
        read[key] = TextBeside(values[key], text)
    return read


def _with(data: dict[Any, Any], path: Path, value: Any) -> dict[Any, Any]:
    """Returns the data with another value at `path`; shares all other parts."""
    key, *rest = path
    return {**data, key: _with(data[key], tuple(rest), value) if rest else value}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
