"""Parses and checks one topology file, and returns a typed Topology or raises every mistake."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from contract.plan import Note

from ..language.problem import Problem, TopologyError, shown
from ..language.source import LARGEST_FILE, Document, Path, dotted, read_document
from . import containers, delays, files, inventory, profiles, retired, tracing
from .checks import check
from .document import CampaignBlock, File, Reference
from .expansion import Expansion
from .expect import Stated
from .parameters import Substitution, declared, resolve
from .phases import Phases
from .validation import place_of, problems_of

STANDARD_INPUT = ("-", "/dev/stdin")
_REMEDIES = {
    errno.EISDIR: "name a YAML file",
    errno.ENOENT: "name a YAML file",
    errno.ENODEV: "write it to a file, or give - and pipe it in",
}


@dataclass(frozen=True)
class Topology:
    """A checked topology, with parameters substituted, ready to be planned."""

    path: str  # the path as the user gave it, for messages
    model: File
    names: Expansion = field(repr=False)
    phases: Phases
    parameters: dict[str, Any]  # all parameters with their values; quantities are texts with their unit
    document: Document = field(repr=False)
    tables: delays.Tables = field(default_factory=dict, repr=False)  # name -> netem table
    # images of light nodes, by the file's text
    images: containers.Images = field(default_factory=dict, repr=False)
    conditions: Stated | None = None  # conditions from outside the file, in addition to its expectations
    # conditions of a campaign's searches; the plan checks them and does not store them
    goals: Stated | None = None
    notes: tuple[Note, ...] = ()  # retired keys that the file uses

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def description(self) -> str:
        return self.model.description

    @property
    def seed(self) -> int:
        return self.model.seed

    @property
    def reference(self) -> Reference | None:
        return self.model.reference

    @property
    def campaign(self) -> CampaignBlock | None:
        return self.model.campaign


def load(
    path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None, hosts: Sequence[str] = ()
) -> Topology:
    """Loads and checks the topology of a file.

    `overrides` are parameter values (text as from -p, or typed); `hosts` are host names that replace the
    file's. Raises TopologyError with every problem found, whatever the file holds.
    """
    return parse(os.fspath(path), read_bytes(path), overrides, hosts)


def parse(
    file: str, content: bytes, overrides: Mapping[str, Any] | None = None, hosts: Sequence[str] = ()
) -> Topology:
    """Parses and checks a topology in memory and returns it; `file` is its name in messages. Raises
    TopologyError with every problem found.
    """
    document = read_document(file, content)
    if not isinstance(document.data, dict):
        rule, remedy = "a topology is a mapping", "begin with `name: my-experiment`"
        raise TopologyError([Problem(file, 1, "", shown(document.data), rule, remedy)])
    problems: list[Problem] = []
    document, notes = retired.renew(document, problems)
    known = declared(document, problems)
    values = resolve(document, known, overrides or {}, problems)
    substitution = Substitution(document, values, known)
    data = substitution.whole(document.data)
    problems += substitution.problems
    data = tracing.expand(data, document, problems)
    data = profiles.expand(data, document, problems)
    data, tables = delays.expand(data, document, problems)
    data, images = containers.expand(data, document, problems)
    data = files.expand(data, document, problems)
    data = inventory.expand(data, document, problems, hosts, notes)
    model = _model(document, data, substitution.failed, problems)
    if model is None:
        raise TopologyError(problems)
    checked = check(document, model, values, frozenset(p.path for p in problems))
    if problems := problems + checked.problems:
        raise TopologyError(problems)
    renewed = tuple(dict.fromkeys(notes))
    return Topology(
        file, model, checked.names, checked.lengths, values, document, tables, images, notes=renewed
    )


def problem_in(file: str, path: Path, value: str, rule: str, remedy: str) -> Problem:
    """Returns a mistake in a topology file, with its line; the line is 0 if the file cannot be
    read any more.
    """
    try:
        return read_document(file, read_bytes(file)).problem(path, value, rule, remedy)
    except TopologyError:
        return Problem(file, 0, dotted(path), value, rule, remedy)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Returns the content of a file, cut above the largest valid size; `-` is the standard input.

    Raises TopologyError if the file cannot be read. A pipe or a device is an error, since reading it may
    never end.
    """
    try:
        if os.fspath(path) in STANDARD_INPUT:
            return sys.stdin.buffer.read(LARGEST_FILE + 1)
        if FilePath(path).exists() and not FilePath(path).is_file():
            raise OSError(errno.EISDIR if FilePath(path).is_dir() else errno.ENODEV, "")
        with FilePath(path).open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        number = (error.errno if isinstance(error, OSError) else None) or 0
        said = os.strerror(number) if number else str(error)
        said = "not a regular file" if number == errno.ENODEV else said
        remedy = _REMEDIES.get(number, "make it readable")
        raise TopologyError(
            [Problem(os.fspath(path), 0, "", "", f"cannot be read ({said})", remedy)]
        ) from None


def _model(
    document: Document, data: dict[str, Any], failed: set[Path], problems: list[Problem]
) -> File | None:
    """Builds the model without the invalid parts, so that the other checks can run, and adds the mistakes to
    `problems`; None if that fails.
    """
    remaining = data
    for _ in range(4):  # removes invalid parts first, then parts that have become invalid
        try:
            return File.model_validate(remaining)
        except ValidationError as error:
            if remaining is data:
                problems += _reported(error, document, failed)
            remaining = _without(remaining, [place_of(item) for item in error.errors(include_url=False)])
    return None


def _reported(error: ValidationError, document: Document, failed: set[Path]) -> list[Problem]:
    unresolved = {document.problem(path, "", "", "").path for path in failed}
    return [p for p in problems_of(error, File, document) if p.path not in unresolved]


def _without(data: dict[str, Any], places: list[Path]) -> dict[str, Any]:
    """Returns the data without the parts (`nodes.broker`, `run`) that hold these places."""
    kept = {key: dict(value) if isinstance(value, dict) else value for key, value in data.items()}
    for place in places:
        section = place[0] if place else None
        part = kept.get(section) if isinstance(section, str) else None
        if section == "links" and len(place) > 2 and _forgotten(part, data[section], place):
            continue  # the link keeps its ends, so that later checks know them
        if isinstance(part, dict) and len(place) > 1 and section not in ("run", "campaign", "reference"):
            part.pop(place[1], None)
        elif isinstance(section, str):
            kept.pop(section, None)
    kept.setdefault("name", "unnamed")
    for listed in ("timeline", "expect"):
        if isinstance(data.get(listed), list) and (listed,) not in places:
            wrong = {place[1] for place in places if place[:1] == (listed,)}
            kept[listed] = [item for index, item in enumerate(data[listed]) if index not in wrong]
    return kept


def _forgotten(links: Any, written: Any, place: Path) -> bool:
    """Removes from a link the key that holds the mistake, such as `forward`; returns whether the link has
    that key.

    The function looks for the key in the link as `written`. So if one key holds two mistakes, the result is
    also True for the second mistake, for which the key is already removed.
    """
    link = links.get(place[1]) if isinstance(links, dict) else None
    if not isinstance(link, dict) or place[2] not in written[place[1]]:
        return False
    links[place[1]] = {key: value for key, value in link.items() if key != place[2]}
    return True
