"""Lists the retired keys of topology files, and renames them. Old names are read for one more version, with a
warning.

TABLE is the only list: loading, warnings, `vnet migrate` and the docs use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from contract.plan import Note

from ..language.problem import Problem
from ..language.source import Document, Path, dotted

ANY = "*"  # stands for any one name


@dataclass(frozen=True, slots=True)
class Retired:
    """A retired key. `where`: path of the mappings that hold it; `new`: path of the present key, from these
    mappings on.
    """

    where: tuple[str, ...]
    old: str
    new: tuple[str, ...]

    @property
    def new_text(self) -> str:
        return ".".join(self.new)

    def whole(self, key: tuple[str, ...]) -> str:
        """Returns the path of a key from the top of the file: `nodes.NAME.mounts.read`."""
        return ".".join((*self.where, *key)).replace(ANY, "NAME")


def _of_machines(below: tuple[str, ...], old: str, *new: str) -> tuple[Retired, ...]:
    return tuple(Retired((section, ANY, *below), old, new) for section in ("nodes", "groups"))


TABLE = (
    *_of_machines((), "sees", "mounts", "read"),
    *_of_machines((), "writes", "mounts", "write"),
    *_of_machines(("software", ANY), "expect", "at_end"),
    *_of_machines(("software", ANY, "flows", ANY), "promise", "guarantee"),
    *_of_machines(("software", ANY, "udp"), "obeys", "rate_limits_from"),
    Retired(("hosts", ANY), "clock", ("cpu_clock",)),
)


@dataclass(frozen=True, slots=True)
class Use:
    """A retired key in a file, and the path of the mapping that holds it."""

    at: Path
    key: Retired

    @property
    def old(self) -> Path:
        return (*self.at, self.key.old)

    @property
    def new(self) -> Path:
        return (*self.at, *self.key.new)


def uses(data: Any) -> Iterator[Use]:
    """Yields all retired keys in the data of a file."""
    for key in TABLE:
        yield from (Use(at, key) for at, holder in _mappings(data, key.where) if key.old in holder)


def _mappings(data: Any, where: tuple[str, ...], at: Path = ()) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if not isinstance(data, dict):
        return
    if not where:
        yield at, data
        return
    for name in data if where[0] == ANY else [where[0]]:
        yield from _mappings(data.get(name), where[1:], (*at, name))


def renew(document: Document, problems: list[Problem]) -> tuple[Document, list[Note]]:
    """Returns the document with every retired key under its present name, and a note for each.

    A file with both the old and the new name of a key is a problem, since either value can be meant.
    """
    found = [*uses(document.data)]
    if not found:
        return document, []
    notes = []
    lines = {use.old: document.lines.get(use.old, 1) for use in found}
    data = document.data
    for use in found:
        if _written(data, use.new):
            rule = f"is the retired spelling of `{use.key.new_text}`, which the file has too"
            problems.append(document.problem(use.old, "", rule, f"remove `{use.key.old}`"))
            data = _moved(data, use.at, use.key.old, ())
            continue
        data = _moved(data, use.at, use.key.old, use.key.new)
        place = f"{document.file}:{lines[use.old]}: {dotted(use.old)}"
        text = f"`{use.key.old}` is the retired spelling of `{use.key.new_text}`, read for one more version"
        notes.append(Note(place, text, f"write `{_example(use.key)}`, or run `vnet migrate {document.file}`"))
    return replace(document, data=data, lines=_lines(document.lines, found)), notes


def _example(key: Retired) -> str:
    first, *rest = key.new
    return f"{first}: {{{rest[0]}: ...}}" if rest else f"{first}: ..."


def _written(data: Any, path: Path) -> bool:
    """Returns whether the path has a value in the data, or passes a value that is not a mapping."""
    for part in path:
        if not isinstance(data, dict):
            return True
        if part not in data:
            return False
        data = data[part]
    return True


def _moved(data: Any, at: Path, old: str, new: tuple[str, ...]) -> Any:
    """Returns the data with key `old` of the mapping at `at` renamed to `new`, in the same position; removed
    if `new` is empty.
    """
    if at:
        return {**data, at[0]: _moved(data[at[0]], at[1:], old, new)}
    holder: dict[str, Any] = {}
    for name, value in data.items():
        if name != old:
            holder.setdefault(name, value)
            continue
        if len(new) == 1:
            holder[new[0]] = value
        elif new:
            holder[new[0]] = {**holder.get(new[0], data.get(new[0], {})), new[1]: value}
    return holder


def _lines(lines: Mapping[Path, int], found: list[Use]) -> dict[Path, int]:
    """Returns the lines with those of renamed paths added, so that a mistake in such a value is shown at its
    line.
    """
    known = dict(lines)
    for use in found:
        size = len(use.old)
        for path, line in lines.items():
            if path[:size] == use.old:
                known.setdefault((*use.new, *path[size:]), line)
        known.setdefault(use.new[: len(use.at) + 1], lines.get(use.old, 1))
    return known


def variables(
    given: Mapping[str, Any], prefix: str, document: Document, at: Path, notes: list[Note]
) -> dict[str, Any]:
    """Returns a host's variables of an inventory, with retired keys of `hosts` under their present names, and
    adds notes. If the present key exists as well, it keeps its value.
    """
    found = dict(given)
    for key in TABLE:
        old, new = prefix + key.old, prefix + key.new[0]
        if key.where[0] == "hosts" and old in found:
            value = found.pop(old)
            found.setdefault(new, value)
            place = f"{document.file}:{document.problem((*at, old), '', '', '').line}: {old}"
            notes.append(Note(place, f"`{old}` is the retired spelling of `{new}`", f"write `{new}:`"))
    return found
