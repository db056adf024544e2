"""Completes `hosts` of a topology from the Ansible inventory, without contacting any machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from contract.plan import Note

from ..language.problem import Problem, TopologyError, closest
from ..language.source import LARGEST_FILE, Document, Path, read_document
from ..project import PROJECT
from . import retired
from .hosts import LOCAL, Host, hosts_value
from .validation import problems_of

VARIABLE = "VNET_INVENTORY"
USUAL = FilePath("inventory") / "hosts.yml"
GROUP = "lab_hosts"
EVERYONE = "all"  # value of `--hosts`
PREFIX = "vnet_"  # prefix of variables that are keys of a host, such as vnet_cores
KEYS = frozenset(Host.model_fields)


class Inventory:
    """The hosts of the group `lab_hosts` in an inventory, which is read at the first lookup."""

    def __init__(self, path: FilePath | None = None) -> None:
        self.path = path or usual()
        self._hosts: dict[str, dict[str, Any]] | None = None
        self.notes: list[Note] = []  # the retired variables that the inventory uses

    def hosts(self) -> dict[str, dict[str, Any]]:
        """Returns the hosts by name, with the keys of a topology's host; TopologyError if the inventory
        cannot be read.
        """
        if self._hosts is None:
            self._hosts = _read(self.path, self.notes)
        return self._hosts


def usual() -> FilePath:
    """Returns the inventory's path: $VNET_INVENTORY, else inventory/hosts.yml in the working directory if it
    exists, else the project's own.
    """
    if given := os.environ.get(VARIABLE):
        return FilePath(given)
    return USUAL if USUAL.exists() else PROJECT / USUAL


def machines(asked: Sequence[str]) -> dict[str, str]:
    """Returns the `machine:` value of each requested host of the inventory, or of all hosts for ["all"];
    TopologyError for an unknown host.
    """
    inventory = Inventory()
    names = list(inventory.hosts()) if list(asked) == [EVERYONE] else asked
    problems = [p for name in names if (p := _stranger(name, inventory)) is not None]
    if problems:
        raise TopologyError(problems)
    return {name: str(inventory.hosts()[name].get("machine", LOCAL)) for name in names}


def _stranger(name: str, inventory: Inventory) -> Problem | None:
    if name in inventory.hosts():
        return None
    near = closest(name, inventory.hosts(), what="hosts there")
    return Problem(str(inventory.path), 0, "--hosts", f'"{name}"', "is not there", near)


def expand(
    data: Any,
    document: Document,
    problems: list[Problem],
    asked: Sequence[str],
    notes: list[Note],
    inventory: Inventory | None = None,
) -> Any:
    """Returns the file's data with hosts completed from the inventory; reports hosts that have no `machine`
    and are not in it. If the inventory cannot be read, reports that and leaves `hosts` out.
    asked: host names from `--hosts` that replace the file's.
    """
    if not isinstance(data, dict):
        return data
    inventory = inventory or Inventory()
    try:
        written = _asked(data, asked, inventory)
        if not isinstance(written, dict):
            # a later check refuses any other form of `hosts`
            return {**data, "hosts": written} if asked else data
        whole = {}
        for name, body in written.items():
            if (problem := _unknown(name, body, document, inventory)) is not None:
                problems.append(replace(problem, line=0, path="--hosts") if asked else problem)
            whole[name] = _whole(str(name), body, inventory)
        notes += inventory.notes
        return {**data, "hosts": whole}
    except TopologyError as error:
        problems += error.problems
        return {key: value for key, value in data.items() if key != "hosts"}


def _asked(data: Mapping[str, Any], asked: Sequence[str], inventory: Inventory) -> Any:
    own = data.get("hosts")
    with suppress(PydanticCustomError):  # the error is reported when the file is read
        own = hosts_value(own)
    if not asked:
        return own
    known = own if isinstance(own, dict) else {}
    names = list(inventory.hosts()) if list(asked) == [EVERYONE] else asked
    return {name: known.get(name) for name in names}


def _said(body: Any) -> bool:
    """Returns whether the file itself names the host's machine, or has an invalid value for the host."""
    return body is not None and (not isinstance(body, dict) or "machine" in body)


def _unknown(name: Any, body: Any, document: Document, inventory: Inventory) -> Problem | None:
    if _said(body) or str(name) in inventory.hosts():
        return None
    rule = f"is not in {inventory.path}, and no `machine` is said"
    near = closest(str(name), inventory.hosts(), what="hosts there")
    remedy = f"{near}; or write `{name}: {{machine: ssh://root@{name}}}`"
    return document.problem(("hosts", str(name)), f'"{name}"', rule, remedy)


def _whole(name: str, body: Any, inventory: Inventory) -> Any:
    """Returns the values of a host. If the file names the machine, they are those of the file; otherwise
    those of the inventory, in which the file's values replace others. An unknown host becomes this machine,
    so that the checks can continue.
    """
    return body if _said(body) else {**inventory.hosts().get(name, {"machine": LOCAL}), **(body or {})}


def _read(path: FilePath, notes: list[Note]) -> dict[str, dict[str, Any]]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        rule = f"cannot be read ({error.strerror or error})"
        remedy = f"write it, or name another by {VARIABLE}"
        raise TopologyError([Problem(str(path), 0, "", "", rule, remedy)]) from None
    document = read_document(str(path), content)
    where, group = _group(document)
    found, problems = {}, list[Problem]()
    shared = group.get("vars")
    for name, own in group["hosts"].items():
        variables = {**(shared if isinstance(shared, dict) else {}), **(own if isinstance(own, dict) else {})}
        place: Path = (*where, "hosts", str(name))
        variables = retired.variables(variables, PREFIX, document, place, notes)
        for key in variables:
            if str(key).startswith(PREFIX) and str(key).removeprefix(PREFIX) not in KEYS:
                keys = [PREFIX + one for one in KEYS]
                near = closest(str(key), keys)
                problems.append(document.problem((*place, str(key)), "", "is no variable of vNET's", near))
        found[str(name)] = _host(str(name), variables)
        try:
            Host.model_validate(found[str(name)])
        except ValidationError as error:
            problems += problems_of(error, Host, document, place)
    if problems:
        raise TopologyError(problems)
    return found


def _group(document: Document) -> tuple[Path, dict[str, Any]]:
    """Returns the path and content of the group `lab_hosts`, at the top or below `all`; TopologyError if
    there is none.
    """
    places: tuple[Path, ...] = ((GROUP,), ("all", "children", GROUP))
    for place in places:
        inside: Any = document.data
        for key in place:
            inside = inside.get(key) if isinstance(inside, dict) else None
        if isinstance(inside, dict) and isinstance(inside.get("hosts"), dict):
            return place, inside
    rule, remedy = f"has no group {GROUP} with hosts", f"write `{GROUP}: {{hosts: {{lab1: ...}}}}`"
    raise TopologyError([document.problem((), "", rule, remedy)])


def _host(name: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: variables[PREFIX + key] for key in KEYS if PREFIX + key in variables}
    return {"machine": _machine(name, variables), **own}


def _machine(name: str, variables: Mapping[str, Any]) -> str:
    """Returns the URL by which Ansible would reach the host; other settings are left to
    ssh's configuration.
    """
    if variables.get("ansible_connection") == "local":
        return LOCAL
    host = str(variables.get("ansible_host", name))
    user, port = variables.get("ansible_user"), variables.get("ansible_port")
    host = f"[{host}]" if ":" in host else host
    return f"ssh://{f'{user}@' if user else ''}{host}{f':{port}' if port else ''}"
