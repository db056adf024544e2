"""Reads the certificates and keys that the software of a topology names, so that the plan needs no files."""

from __future__ import annotations

from typing import Any

from ..language.beside import TextBeside, file_beside, text_of
from ..language.problem import Problem
from ..language.source import Document, Path

_KEYS = ("ca", "cert", "key")
_HOLDERS = ((), ("mqtt",))  # where software has `tls`


def expand(data: Any, document: Document, problems: list[Problem]) -> Any:
    """Returns the data with each file of a `tls` read; a file that cannot be read is a problem."""
    for section in ("nodes", "groups"):
        for name, machine in _mapping(_mapping(data).get(section)).items():
            for program, software in _mapping(_mapping(machine).get("software")).items():
                for holder in _HOLDERS:
                    path = (section, str(name), "software", str(program), *holder, "tls")
                    data = _read(data, path, software, holder, document, problems)
    return data


def _read(
    data: Any, path: Path, software: Any, holder: tuple[str, ...], document: Document, problems: list[Problem]
) -> Any:
    for key in holder:
        software = _mapping(software).get(key)
    tls = _mapping(_mapping(software).get("tls"))
    found = dict(tls)
    for key in _KEYS:
        if isinstance(tls.get(key), str):
            text = text_of(file_beside(document, tls[key]), document, (*path, key), problems)
            found[key] = None if text is None else TextBeside(tls[key], text)
    return _with(data, path, found) if found != tls or any(k in tls for k in _KEYS) else data


def _with(data: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Returns the data with another value at `path`; shares all other parts."""
    key, *rest = path
    return {**data, key: _with(data[str(key)], tuple(rest), value) if rest else value}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
