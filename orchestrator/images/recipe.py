"""Reads the recipes of images from images/guest/ and computes the hash in an image's name."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.project import PROJECT

GUEST = PROJECT / "images" / "guest"
RECIPES = GUEST / "recipes.toml"


@dataclass(frozen=True, slots=True)
class Recipe:
    name: str
    kernel: str  # name of the Debian package; "tiny" stands for vNET's own kernel
    memory_mib: int
    append: str
    early: tuple[str, ...] = ()  # modules that are loaded early
    late: tuple[str, ...] = ()
    # the key `with` of the file: sections of [contents] in addition to those that all images have
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Disk:
    """The recipe of a Debian system on a disk."""

    name: str
    disk_mib: int
    memory_mib: int
    append: str
    packages: tuple[str, ...]
    masked: tuple[str, ...]  # units that must not start


@dataclass(frozen=True, slots=True)
class Contents:
    packages: tuple[str, ...]
    accounts: tuple[str, ...]  # accounts to which the image's programs change
    programs: dict[str, str]  # path below /usr in the guest -> path in the package
    members: dict[str, tuple[str, ...]]  # group -> its accounts, besides the account with the group's name
    libraries: tuple[str, ...]  # directories in the packages with libraries, besides those of the system


def contents(more: Sequence[str] = (), file: Path = RECIPES) -> Contents:
    """Returns the contents that all built-in images have, with those of the sections `more`, from the
    recipes' `file`. Raises KeyError for an unknown section.
    """
    raw = tomllib.loads(file.read_text())["contents"]
    parts = [raw, *(raw[name] for name in more)]
    return Contents(
        tuple(package for part in parts for package in part["packages"]),
        tuple(account for part in parts for account in part["accounts"]),
        {place: source for part in parts for place, source in part["programs"].items()},
        {g: tuple(accounts) for part in parts for g, accounts in part.get("members", {}).items()},
        tuple(directory for part in parts for directory in part.get("libraries", ())),
    )


def recipes(file: Path = RECIPES) -> dict[str, Recipe | Disk]:
    """Returns the recipes of the images that vNET builds, by name."""
    raw = tomllib.loads(file.read_text())
    return {name: _recipe(name, fields) for name, fields in raw.items() if name != "contents"}


def _recipe(name: str, fields: dict[str, Any]) -> Recipe | Disk:
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    if "disk_mib" in plain:
        return Disk(name=name, **plain)
    return Recipe(name=name, more=plain.pop("with", ()), **plain)


def digest(files: list[Path], *words: str) -> str:
    """Returns 16 hexadecimal digits over the contents of files and words: the inputs of a build."""
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    for word in words:
        total.update(hashlib.sha256(word.encode()).digest())
    return total.hexdigest()[:16]
