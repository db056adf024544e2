"""Parses the forms of a Compose file: variables, lists or mappings, commands, durations, sizes and
dependencies.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..language.source import Document
from .files import script

Place = tuple[str | int, ...]
# $$, the start of ${NAME...} up to its operator, or $NAME
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?:(:?[-?+])|(?=\}))|([A-Za-z_]\w*))")
_BRACE = re.compile(r"\$\{|\}")
# largest depth of defaults inside defaults, number of characters of a default, number of braces without an
# end
DEEPEST, LONGEST, MOST_OPEN = 20, 10_000, 100
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
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


# Keys of a service that are read, each with the forms of its value: text (also numbers), list of texts, list,
# mapping of texts, mapping (compose-spec, schema/compose-spec.json).
_TEXTS, _LIST, _MAP, _NAMES, _TEXT = "list of texts", "list", "mapping", "mapping of texts", "text"
FORMS = {
    "image": (_TEXT,), "command": (_TEXT, _TEXTS), "entrypoint": (_TEXT, _TEXTS), "working_dir": (_TEXT,),
    "environment": (_NAMES, _TEXTS), "env_file": (_TEXT, _LIST), "networks": (_TEXTS, _MAP),
    "depends_on": (_TEXTS, _MAP), "healthcheck": (_MAP,), "cpus": (_TEXT,), "mem_limit": (_TEXT,),
    "pids_limit": (_TEXT,), "deploy": (_MAP,), "sysctls": (_NAMES, _TEXTS), "network_mode": (_TEXT,),
    "scale": (_TEXT,), "ports": (_LIST,), "profiles": (_TEXTS,), "expose": (_TEXTS,),
}  # fmt: skip


def wrong_forms(service: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns (key, the forms that it may have) of each value of a service in another form; None is none."""
    found = [
        (key, " or ".join(forms))
        for key, forms in FORMS.items()
        if service.get(key) is not None and not any(_is_of(form, service[key]) for form in forms)
    ]
    if isinstance(mapping(service.get("healthcheck")).get("test"), dict):
        found.append(("healthcheck", "healthcheck: its test is a mapping"))
    return found


def _is_of(form: str, value: Any) -> bool:
    def text(one: Any) -> bool:
        truth = isinstance(one, bool) and form != _NAMES  # a variable may be true or false, a word may not
        return one is None or (isinstance(one, str | int | float) and not truth)

    if form in (_MAP, _NAMES):
        return isinstance(value, dict) and (form == _MAP or all(map(text, value.values())))
    if form in (_LIST, _TEXTS):
        return isinstance(value, list) and (form == _LIST or all(map(text, value)))
    return text(value)


def unmapped(data: dict[str, Any]) -> list[tuple[Place, Any]]:
    """Returns (path, value) of each section, service and network that is no mapping; services need one."""
    found: list[tuple[Place, Any]] = []
    for section in ("services", "networks"):
        if not isinstance(given := data.get(section) or {}, dict):
            found.append(((section,), given))
        for name, keys in mapping(given).items():
            if not isinstance(keys, dict) and (keys is not None or section == "services"):
                found.append(((section, name), keys))
    return found


def networks_of(keys: Any) -> list[str]:
    """Returns the names of a service's networks; `default` for one that names none."""
    given = mapping(keys).get("networks")
    if mapping(keys).get("network_mode") not in (None, "bridge"):
        return []
    return [str(one) for one in given] if given and isinstance(given, list | dict) else ["default"]


def port_text(port: Any) -> str:
    """Returns a port of a service as PUBLISHED:TARGET, or as the file has it."""
    one = mapping(port)
    return f"{one.get('published', '')}:{one.get('target', '')}" if one else str(port)


def interpolated(path: Path, content: bytes) -> tuple[bytes, list[str]]:
    """Returns the file with `$NAME` and `${NAME...}` replaced by the values in `.env` beside the file, or by
    the defaults in the file, or by nothing; also one report line for each variable and value. The environment
    of this process does not count. Returns content that is not UTF-8 unchanged. TopologyError for a variable
    without a value that the file requires (`${NAME:?text}`), unless the line is a comment.
    """
    given: dict[str, str] = {}
    if (file := path.parent / ".env").is_file():
        lines = [line.strip() for line in script(file).splitlines()]
        given = {
            key: value.strip("\"'")
            for key, _, value in (one.partition("=") for one in lines)
            if key[:1] != "#"
        }
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content, []  # read_document reports this line
    variables = _Variables(path, given, text)
    done = variables.expanded(0, len(text))
    if variables.problems:
        raise TopologyError(list(variables.problems))
    return done.encode(), list(variables.said)


class _Variables:
    """Expands the variables of the text; the report lines are in `said`, the variables that the file requires
    and that have no value in `problems`.
    """

    def __init__(self, path: Path, given: dict[str, str], text: str) -> None:
        self._path, self._given, self._text = path, given, text
        self._open = 0  # number of braces so far that nothing closes
        self.said: dict[str, None] = {}
        self.problems: dict[Problem, None] = {}

    def expanded(self, at: int, end: int, depth: int = 0) -> str:
        """Returns the text from `at` to `end` with its variables expanded, also those of used defaults."""
        found: list[str] = []
        while (start := _VARIABLE.search(self._text, at, end)) is not None:
            found.append(self._text[at : start.start()])
            at = start.end()
            close = at if start[2] is None else self._closing(at, end)
            if close is None:
                self._open += 1
                if self._open > MOST_OPEN:
                    self._problem(
                        start, f"has more than {MOST_OPEN} braces that nothing closes", "close them"
                    )
                    return ""
                found.append(start[0])  # no variable
                continue
            found.append("$" if start[1] else self._value(start, close, depth))
            at = close + (start[2] is not None)
        return "".join((*found, self._text[at:end]))

    def _closing(self, at: int, end: int) -> int | None:
        """Returns the place of the brace that closes the variable whose default begins at `at`, if the
        default has at most LONGEST characters."""
        depth = 1
        for brace in _BRACE.finditer(self._text, at, min(end, at + LONGEST)):
            depth += 1 if brace[0] == "${" else -1
            if depth == 0:
                return brace.start()
        return None

    def _value(self, start: re.Match[str], close: int, depth: int) -> str:
        name, operator = start[2] or start[4], start[3] or ""
        own = self._given.get(name)
        absent = not own if operator.startswith(":") else own is None
        if operator.endswith("+"):
            text = "" if absent else self._default(start, close, depth)
        elif not absent:
            text = str(own)
        elif operator.endswith("-"):
            text = self._default(start, close, depth)
        else:
            text = ""
            if operator:
                self._require(start, name, self._default(start, close, depth))
        self.said[f'the variable {name} is "{text}" here'] = None
        return text

    def _default(self, start: re.Match[str], close: int, depth: int) -> str:
        if depth == DEEPEST:
            self._problem(start, f"nests more than {DEEPEST} defaults", "write fewer")
            return ""
        return self.expanded(start.end(), close, depth + 1)

    def _require(self, start: re.Match[str], name: str, said: str) -> None:
        line = self._text.rfind("\n", 0, start.start()) + 1
        if not self._text[line:].lstrip(" ").startswith("#"):
            rule = f"has no value: {said or 'the file requires one'}"
            self._problem(start, rule, f"write {name}=VALUE into {self._path.parent / '.env'}")

    def _problem(self, start: re.Match[str], rule: str, remedy: str) -> None:
        line = self._text.count("\n", 0, start.start()) + 1
        value = "${" + (start[2] or start[4]) + "}"
        self.problems[Problem(str(self._path), line, "", value, rule, remedy)] = None


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


def seconds(text: Any) -> float | None:
    """Parses a duration such as 1m30s, 500ms or 0; returns seconds, or None for text that is none."""
    parts = _SPAN.findall(str(text))
    if str(text) != "0" and (not parts or "".join(map("".join, parts)) != str(text)):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


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
