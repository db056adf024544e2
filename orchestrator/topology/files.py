"""Reads the files that the software of a topology names: certificates, keys, payloads."""

from __future__ import annotations

from typing import Any

from ..language.beside import TextBeside, file_beside, text_of
from ..language.problem import Problem
from ..language.source import Document, Path

_TLS = ("ca", "cert", "key")
# Where software has keys that name a file, and the keys.
_PLACES = {("tls",): _TLS, ("mqtt", "tls"): _TLS, ("mqtt", "publish"): ("file",)}


def expand(data: Any, document: Document, problems: list[Problem]) -> Any:
    """Returns the data with each file read; a file that cannot be read is a problem."""
    for section in ("nodes", "groups"):
        for name, machine in _mapping(_mapping(data).get(section)).items():
            for program, software in _mapping(_mapping(machine).get("software")).items():
                for place, keys in _PLACES.items():
                    path = (section, name, "software", program, *place)
                    found = software
                    for key in place:
                        found = _mapping(found).get(key)
                    if any(isinstance(_mapping(found).get(key), str) for key in keys):
                        data = _with(data, path, _read(found, path, keys, document, problems))
    return data


def _read(
    values: dict[str, Any], path: Path, keys: tuple[str, ...], document: Document, problems: list[Problem]
) -> dict[str, Any]:
    read = dict(values)
    for key in (key for key in keys if isinstance(values.get(key), str)):
        text = text_of(file_beside(document, values[key]), document, (*path, key), problems)
        read[key] = TextBeside(values[key], text or "")
    return read


def _with(data: dict[Any, Any], path: Path, value: Any) -> dict[Any, Any]:
    """Returns the data with another value at `path`; shares all other parts."""
    key, *rest = path
    return {**data, key: _with(data[key], tuple(rest), value) if rest else value}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
