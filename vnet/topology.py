"""Builds a topology file in Python: takes plain data and writes the YAML that `vnet` reads.

This module refuses only values that YAML cannot hold and names that are taken. `vnet check` checks keys and
values, with the same rules for files written by hand and by program; `vnet explain` describes them.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

Data = dict[str, Any]
HYPHENS = {"link_down": "link-down", "link_up": "link-up"}


class TopologyError(ValueError):
    """Raised if a topology file cannot have a value or name, or lacks an entry or its own name."""


class Topology:
    """Builds one topology. Keyword arguments are keys of the file: `for_` and `class_` mean `for` and
    `class`, reserved words of Python; `link_down` and `link_up` mean `link-down` and `link-up`.

    Methods raise TopologyError for a value that YAML cannot hold and, if they add a named entry, for a name
    that is taken. All methods that change the topology return it.
    """

    def __init__(self, name: str, **keys: Any) -> None:
        self._data: Data = {"name": name} | _plain_keys(keys)

    @classmethod
    def read(cls, text: str) -> Topology:
        """Returns the topology in the text of a YAML file, which can be changed and written again;
        TopologyError if the text is no mapping with a `name`.
        """
        from ruamel.yaml import YAML

        data = YAML(typ="safe", pure=True).load(text)
        if not isinstance(data, dict) or "name" not in data:
            raise TopologyError("a topology is a mapping with a `name`")
        made = cls(data["name"])
        made._data = _plain(data)
        return made

    @property
    def name(self) -> str:
        """The name of the topology."""
        return str(self._data["name"])

    @property
    def data(self) -> Data:
        """A copy of the content of the file, as plain data."""
        copied: Data = _plain(self._data)
        return copied

    def parameter(self, name: str, type: str, **keys: Any) -> Self:  # `type` is a key of the file
        """Declares the parameter `${name}`; a run may leave it out if it has `default=`."""
        return self._add("parameters", name, {"type": type} | keys)

    def segment(self, name: str, subnet: str | list[str] | None = None, **keys: Any) -> Self:
        """Adds a segment (broadcast domain)."""
        return self._add("segments", name, ({} if subnet is None else {"subnet": subnet}) | keys)

    def node(self, name: str, segment: str | list[str] | None = None, **keys: Any) -> Self:
        """Adds a node on one segment, several or none, with programs as `software={"NAME": {"KIND":
        {...}}}`.
        """
        return self._add("nodes", name, ({} if segment is None else {"segment": segment}) | keys)

    def group(self, name: str, count: int | str, segment: str | list[str], **keys: Any) -> Self:
        """Adds a group of `count` equal nodes on one segment or several."""
        return self._add("groups", name, {"count": count, "segment": segment} | keys)

    def link(self, name: str, first: str, second: str, **keys: Any) -> Self:
        """Adds a link between two segments or nodes, with impairments as `both={"delay": "20 ms"}`, or
        `forward` and `reverse`.
        """
        return self._add("links", name, {"between": [first, second]} | keys)

    def capture(self, name: str, at: str, **keys: Any) -> Self:
        """Adds a capture point: `at="node server"`."""
        return self._add("captures", name, {"at": at} | keys)

    def event(self, at: str, **keys: Any) -> Self:
        """Adds an event to the timeline: `at="hold + 5 s", link_down="wan", for_="2 s"`."""
        self._data.setdefault("timeline", []).append(_plain_keys({"at": at} | keys))
        return self

    def expect(self, *lines: str, **keys: Any) -> Self:
        """Adds expectations: lines such as `"latency_p99[class=a] < 5 ms"`, or one as keys of the file:
        `metric="latency_p99", class_="a", below="5 ms"`.
        """
        self._data.setdefault("expect", []).extend([*lines, *([_plain_keys(keys)] if keys else [])])
        return self

    def phases(self, **keys: Any) -> Self:
        """Sets keys of the file's `run`, the lengths of the phases (`hold="20 s"`, `drain`,
        `connect_interval`); other keys stay.
        """
        self._data.setdefault("run", {}).update(_plain_keys(keys))
        return self

    def set(self, **keys: Any) -> Self:
        """Sets keys at the top of the file (`seed=7`, `routing="hops"`, `campaign={...}`) and replaces their
        old values.
        """
        self._data.update(_plain_keys(keys))
        return self

    def change(self, section: str, name: str, **keys: Any) -> Self:
        """Sets keys of an existing entry of a section: `change("links", "wan", both={"delay": "50 ms"})`;
        other keys stay. TopologyError if the entry does not exist.
        """
        part: Data = self._data.get(section, {})
        if name not in part:
            raise TopologyError(f"{section}.{name}: is not there; there are: {', '.join(part) or 'none'}")
        part[name].update(_plain_keys(keys))
        return self

    def yaml(self) -> str:
        """Returns the YAML text of the topology."""
        from ruamel.yaml import YAML

        writer = YAML(pure=True)
        writer.default_flow_style = None
        writer.width = 110
        text = io.StringIO()
        writer.dump(_quoted(self._data), text)
        return text.getvalue()

    def write(self, file: str | Path) -> Path:
        """Writes the topology as YAML, replaces an earlier file, and returns the path."""
        path = Path(file)
        path.write_text(self.yaml(), encoding="utf-8")
        return path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self._data == other._data

    def __repr__(self) -> str:
        counted = {key: len(value) for key, value in self._data.items() if isinstance(value, dict | list)}
        return f"Topology({self.name!r}: {', '.join(f'{n} {key}' for key, n in counted.items()) or 'empty'})"

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _add(self, section: str, name: str, keys: Data) -> Self:
        part: Data = self._data.setdefault(section, {})
        if name in part:
            raise TopologyError(f"{section}.{name}: is there already; give this one another name")
        part[name] = _plain_keys(keys)
        return self


def _plain_keys(keys: Mapping[str, Any]) -> Data:
    return {HYPHENS.get(key, key.removesuffix("_")): _plain(value) for key, value in keys.items()}


def _plain(value: Any) -> Any:
    """Converts a value to what YAML can express, a `timedelta` to a text in us; TopologyError for other types
    and for infinite numbers.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, timedelta):
        return f"{round(value / timedelta(microseconds=1))} us"
    if isinstance(value, float) and not math.isfinite(value):
        raise TopologyError(f"{value}: a topology holds finite numbers")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TopologyError(f"{value!r}: a topology holds text, numbers, true, false, lists and mappings")


def _quoted(value: Any) -> Any:
    """Returns the value with quotes around each text that a YAML reader could take for something else, and
    with multi-line texts as literal blocks.
    """
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, dict):
        return {_quoted(key): _quoted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_quoted(inner) for inner in value]
    if isinstance(value, str) and _block(value):
        return LiteralScalarString(value)
    if isinstance(value, str) and not _safe(value):
        return DoubleQuotedScalarString(value)
    return value


def _block(text: str) -> bool:
    """Returns whether the text is several printable ASCII lines that YAML can hold as a literal block, such
    as a configuration: no line ends with a space, the first begins with none, and each ends with a newline.
    """
    lines = text.splitlines()
    plain = all(line.isascii() and line.isprintable() and line == line.rstrip() for line in lines)
    return (
        len(lines) > 1
        and plain
        and text == "\n".join(lines) + "\n"
        and lines[0][:1] not in ("", " ")
        and bool(lines[-1])
    )


def _safe(text: str) -> bool:
    """Returns whether YAML can hold the text without quotes: it begins with a letter, has only plain
    characters, and is no YAML constant such as "yes".
    """
    ordinary = text[:1].isalpha() and text.isascii() and all(c.isalnum() or c in " -_./" for c in text)
    constants = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
    return ordinary and text == text.strip() and text.lower() not in constants
