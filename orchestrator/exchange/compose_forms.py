"""Parses the forms of a Compose file: variables, lists or mappings, commands, durations, sizes and
dependencies.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..language.problem import Problem
from ..language.source import Document
from .files import script

Place = tuple[str | int, ...]
_VARIABLE = re.compile(r"\$(\$|\{(\w+)(?:(:?[-?+])([^{}]*))?\}|([A-Za-z_]\w*))")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmg]?)i?b?", re.IGNORECASE)


class Refusals:
    """Collects the parts of a file that cannot be imported as problems, each with its line, in `problems`."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[Problem] = []

    def add(self, path: Place, rule: str, remedy: str, value: str = "") -> None:
        self.problems.append(self._document.problem(path, value, rule, remedy))

    def line(self, path: Place) -> int:
        return self._document.problem(path, "", "", "").line


def interpolated(path: Path, content: bytes) -> tuple[bytes, list[str]]:
    """Returns the file with `$NAME` and `${NAME...}` replaced by the values in `.env` beside the file, or by
    the defaults in the file, or by nothing; also one report line for each variable and value. The environment
    of this process does not count. Returns content that is not UTF-8 unchanged.
    """
    given: dict[str, str] = {}
    if (file := path.parent / ".env").is_file():
        lines = [line.strip() for line in script(file).splitlines()]
        given = {
            key: value.strip("\"'")
            for key, _, value in (one.partition("=") for one in lines)
            if key[:1] != "#"
        }
    said: dict[str, None] = {}

    def value(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        name, operator, default = found[2] or found[5], found[3] or "", found[4] or ""
        own = given.get(name)
        absent = not own if operator.startswith(":") else own is None
        if operator.endswith("+"):
            text = "" if absent else default
        else:
            text = (default if operator.endswith("-") else "") if absent else str(own)
        said[f'the variable {name} is "{text}" here'] = None
        return text

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content, []  # read_document reports the line
    return _VARIABLE.sub(value, text).encode(), list(said)


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def pairs(value: Any) -> list[tuple[str, str | None]]:
    """Returns (name, value) pairs of a mapping, or of a list of NAME=VALUE; the value is None for a name
    without a value. Booleans become `true` and `false`.
    """
    if isinstance(value, dict):
        return [(key, None if one is None else _text(one)) for key, one in value.items()]
    found = [str(one).partition("=") for one in listed(value)]
    return [(key, text if sign else None) for key, sign, text in found]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def split(command: Any) -> list[str] | None:
    """Returns a command's words; splits text as a shell does, without running one. Text with open quotes
    stays one word.

    None if there is no command.
    """
    if command is None:
        return None
    try:
        return [_text(one) for one in command] if isinstance(command, list) else shlex.split(str(command))
    except ValueError:
        return [str(command)]


def seconds(text: Any) -> float:
    """Parses a duration such as 1m30s or 500ms; returns seconds, and 0 for text without such parts."""
    return sum(float(number) * _UNITS[unit] for number, unit in _SPAN.findall(str(text)))


def size(text: str) -> str | None:
    """Returns a size of Compose, whose units are always binary, in the topology's form (`512 MiB`); None if
    the text is no size in bytes, KiB, MiB or GiB.
    """
    found = _SIZE.fullmatch(text)
    return (
        None
        if found is None
        else f"{found[1]} {({'': 'B', 'k': 'KiB', 'm': 'MiB', 'g': 'GiB'})[found[2].lower()]}"
    )


def sorted_services(services: dict[str, Any], refuse: Callable[[Place, str, str], None]) -> list[str]:
    """Returns the services' names, each after those that it depends on. Calls `refuse` for a cycle, for a
    chain of more than 200 services, and for a dependency that is no service.
    """
    done: list[str] = []
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in open_ or len(open_) > 200:
            refuse(("services", name, "depends_on"), f"{name} depends on itself", "break the cycle")
            return
        open_.append(name)
        needed = mapping(services[name]).get("depends_on")
        for other in needed if isinstance(needed, dict | list) else []:
            if str(other) in services:
                visit(str(other))
            else:
                refuse(
                    ("services", name, "depends_on"), f"{other} is no service of the file", "mend the name"
                )
        open_.pop()
        done.append(name)

    for name in services:
        visit(name)
    return done
