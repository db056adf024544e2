"""Parses the forms of netlab's topologies: dotted keys, nested groups, links in text, lists and mappings."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import Any

from .files import Mapped

Place = tuple[str | int, ...]
Refuse = Callable[[Place, str, str], None]
Entry = tuple[Place, str, dict[str, Any]]
ABOUT_GROUP = {"members", "vars", "config", "type", "node_data", "_auto_create", "priority"}
MOST_DEEP = 40  # largest number of dots in a key
MOST_GROUPS = 100  # largest depth of groups inside groups


def nested(value: Any) -> dict[str, Any]:
    """Turns dotted keys (`a.b: c`) into nested mappings at every level of mappings, as netlab does; empty if
    `value` is no mapping. Ignores a key's words after the first MOST_DEEP.
    """
    found: dict[str, Any] = Mapped()
    for key, content in mapping(value).items():
        *way, last = str(key).split(".")[:MOST_DEEP]
        inner: Any = nested(content) if isinstance(content, dict) else content
        for word in [last, *reversed(way)]:
            inner = Mapped({word: inner})
        ((first, content),) = inner.items()
        both = isinstance(content, dict) and isinstance(found.get(first), dict)
        found[first] = merged(found[first], content) if both else content
    return found


def including(data: dict[str, Any], place: Place = ()) -> Iterator[Place]:
    """Yields the path of each key that includes a file (`_include`), at every level of mappings."""
    if "_include" in data:
        yield (*place, "_include")
    for key, value in data.items():
        yield from including(value, (*place, key)) if isinstance(value, dict) else ()


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merges two mappings at every level; a value of `above` that is no mapping replaces that of `below`."""
    found: dict[str, Any] = Mapped(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = merged(found[key], value) if both else value
    return found


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def words(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)] if value else []


def node_entries(nodes: Any) -> list[Entry]:
    """Returns (path in the file, name, keys) of each node, from any form: a mapping, a list of names or
    mappings, or names in one text.
    """
    if isinstance(nodes, str):
        nodes = nodes.split()
    if isinstance(nodes, dict):
        return [(("nodes", name), str(name), nested(keys)) for name, keys in nodes.items()]
    found: list[Entry] = []
    for number, one in enumerate(nodes if isinstance(nodes, list) else []):
        keys = nested(one)
        found.append((("nodes", number), str(keys.get("name") or one), keys))
    return found


class Groups:
    """The groups of nodes in a topology: their keys and members, and the nodes that they create (`made`, by
    `_auto_create`).
    """

    def __init__(self, data: dict[str, Any], entries: list[Entry], refuse: Refuse) -> None:
        self._refuse = refuse
        given = mapping(data.get("groups"))
        default = mapping(mapping(data.get("defaults")).get("groups"))
        self.keys: dict[str, dict[str, Any]] = {}
        for name in [*given, *(one for one in default if one not in given)]:
            if not str(name).startswith("_"):
                both = merged(self._group(default.get(name)), self._group(given.get(name)))
                self.keys[str(name)] = both
        # The groups of the file, without groups that only `defaults` has.
        self._everywhere = set(given) if given.get("_auto_create") else set()
        for _, node, keys in entries:
            for name in words(keys.get("group")):
                self.keys.setdefault(name, {}).setdefault("members", [])
                self.keys[name]["members"] = [*self.keys[name]["members"], node]
        self._names = {node for _, node, _ in entries}
        self.made = list(dict.fromkeys(self._auto()))
        self._names |= {node for _, node in self.made}
        self._members: dict[str, dict[str, int]] = {}
        for name in self.keys:
            self._of(name, ())

    @staticmethod
    def _group(value: Any) -> dict[str, Any]:
        return {"members": value} if isinstance(value, list) else nested(value)

    def _auto(self) -> Iterator[tuple[str, str]]:
        for name, keys in self.keys.items():
            if keys.get("type", "node") == "node" and (keys.get("_auto_create") or name in self._everywhere):
                for node in words(keys.get("members")):
                    plain = (
                        node not in self._names and node not in self.keys and not re.search(r"[*?\[~]", node)
                    )
                    if plain:
                        yield name, node

    def _of(self, name: str, above: tuple[str, ...]) -> dict[str, int]:
        """Returns the nodes of a group with their depth below it, 0 for direct members; empty for a group of
        another type than nodes. Refuses a group that contains itself, and a member that is no node, group or
        pattern.
        """
        if name in above:
            way = " -> ".join((*above[above.index(name) :], name))
            self._refuse(
                ("groups", name), f"the group {name} is a member of itself ({way})", "break the cycle"
            )
            return {}
        if name in self._members:
            return self._members[name]
        found: dict[str, int] = {}
        if len(above) == MOST_GROUPS:
            rule = f"the group {name} is within more than {MOST_GROUPS} groups"
            self._refuse(("groups", name), rule, "use fewer levels")
            return found
        self._members[name] = found
        if (kind := self.keys[name].get("type", "node")) != "node":
            rule = f"the group {name} is of type {kind!s:.20}, which cannot be taken over"
            self._refuse(("groups", name), rule, "take it out")
            return found
        for member in words(self.keys[name].get("members")):
            if member in self._names:
                found[member] = 0
            elif member in self.keys:
                found |= {
                    node: depth + 1
                    for node, depth in self._of(member, (*above, name)).items()
                    if node not in found
                }
            elif member.startswith("~") and (wrong := _wrong(member[1:])):
                rule = f"the group {name} has a member {member[:60]}, an expression that {wrong}"
                self._refuse(("groups", name), rule, "write names, or a simpler expression")
            elif (some := self._like(member)) or re.search(r"[*?\[~]", member):
                found |= dict.fromkeys(some, 0)
            else:
                rule = f"the group {name} has a member {member}, which is no node of the file"
                self._refuse(("groups", name), rule, "name it in `nodes`, or write _auto_create: true")
        return found

    def _like(self, pattern: str) -> list[str]:
        if pattern.startswith("~"):
            return [name for name in self._names if re.fullmatch(pattern[1:], name[:100])]
        return [name for name in self._names if fnmatch.fnmatchcase(name, pattern)]

    def data_of(
        self, node: str, known: Callable[[str], bool]
    ) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Returns the keys that the node's groups set, inner groups over outer ones, with the modules of all;
        also (group, key) of the keys that `known` rejects, and of `vars` and `config`.
        """
        mine = sorted(
            ((members[node], name) for name, members in self._members.items() if node in members),
            reverse=True,
            key=lambda one: one[0],
        )  # fmt: skip
        found: dict[str, Any] = {}
        modules: list[str] = []
        unknown: list[tuple[str, str]] = []
        for _, name in mine:
            keys = merged(nested(self.keys[name].get("node_data")), self.keys[name])
            own = {key: value for key, value in keys.items() if key not in ABOUT_GROUP}
            unknown += [(name, key) for key in own if not known(key)]
            unknown += [(name, key) for key in ("vars", "config") if keys.get(key)]
            modules += [one for one in words(own.pop("module", None)) if one not in modules]
            found = merged(found, {key: value for key, value in own.items() if known(key)})
        if any("module" in self.keys[name] for _, name in mine):
            found["module"] = modules
        return found, unknown

    def extra(self, name: str, known: Callable[[str], bool]) -> dict[str, Any]:
        """Returns the known keys of a group that netlab itself fills (as65001, frr); empty if there is no
        such group or the file lists its members.
        """
        keys = self.keys.get(name, {})
        return {key: value for key, value in keys.items() if known(key)} if "members" not in keys else {}


def link_entries(links: Any, path: Place = ("links",)) -> Iterator[tuple[Place, Any]]:
    """Yields (path, link) of all links in mappings of lists, lists and link groups, whose keys the members
    inherit; omits disabled links and groups. A link itself stays in its form.
    """
    if isinstance(links, dict):
        for name, some in links.items():
            yield from link_entries(some, (*path, name))
        return
    if isinstance(links, str):
        yield path, links
        return
    for number, link in enumerate(links if isinstance(links, list) else []):
        place = (*path, number)
        if isinstance(link, dict) and "group" in link and "members" in link:
            common = {key: value for key, value in nested(link).items() if key not in ("group", "members")}
            if common.pop("disable", False) is True:
                continue
            for inner, member in link_entries(link["members"], (*place, "members")):
                yield inner, _of_group(member, common)
        elif not (isinstance(link, dict) and link.get("disable") is True):
            yield place, link


def _wrong(pattern: str) -> str:
    """Returns the reason for which a regular expression is refused: it is invalid, or matching may not end
    (more than three repetitions, or a repeated group); "" if there is no reason.
    """
    plain = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "x", pattern)
    if len(pattern) > 200 or len(re.findall(r"[*+{]", plain)) > 3 or re.search(r"\)[*+{]", plain):
        return "may never end"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return "is none"
    return ""


def _of_group(member: Any, common: dict[str, Any]) -> dict[str, Any]:
    own = nested(member) if isinstance(member, dict) else {"interfaces": ends_of(member)}
    return merged(common, own)


def ends_of(link: Any) -> list[Any]:
    """Returns the nodes of a link in text form (a-b) as names, or the items of the list form."""
    return list(link) if isinstance(link, list) else [one.strip() for one in str(link).split("-")]
