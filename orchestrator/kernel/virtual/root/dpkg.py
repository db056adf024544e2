"""Reads Debian's database of packages: what is installed, who owns a file, diversions and alternatives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Directories of / that Debian has merged into /usr; dpkg lists files under both names.
MERGED = ("bin", "sbin", "lib", "lib64", "lib32", "libx32")
_FIELD = re.compile(
    r"^(Package|Status|Version|Architecture|Depends|Pre-Depends|Recommends|Provides|Priority|Section): (.*)$",
    re.MULTILINE,
)
_PRIORITIES = ("required", "important", "standard", "optional", "extra")


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package.

    depends: for each dependency, the names that satisfy it, in Debian's order.
    """

    name: str
    version: str
    depends: tuple[tuple[str, ...], ...]
    recommends: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]
    priority: str
    section: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """A name such as awk and the programs that can stand for it.

    choices: program, priority, and further links of each.
    """

    name: str
    link: str
    choices: tuple[tuple[str, int, tuple[tuple[str, str, str], ...]], ...]  # each link: name, place, target


class Database:
    """Debian's database of packages. root: where the machine's files are (/); admin: dpkg's directory below
    it.
    """

    def __init__(self, root: Path = Path("/"), admin: str = "var/lib/dpkg") -> None:
        self.root = root
        self.admin = root / admin

    @cached_property
    def packages(self) -> dict[str, Package]:
        """The installed packages by name; packages of another architecture by name:architecture."""
        found: dict[str, Package] = {}
        text = (self.admin / "status").read_text(encoding="utf-8", errors="replace")
        for paragraph in text.split("\n\n"):
            fields = dict(_FIELD.findall(paragraph))
            if not fields.get("Status", "").endswith(" installed"):
                continue
            foreign = fields["Architecture"] not in ("all", self.architecture)
            name = fields["Package"] + (f":{fields['Architecture']}" if foreign else "")
            found[name] = Package(
                name,
                fields["Version"],
                (*_relations(fields.get("Pre-Depends", "")), *_relations(fields.get("Depends", ""))),
                tuple(_relations(fields.get("Recommends", ""))),
                tuple(one[0] for one in _relations(fields.get("Provides", ""))),
                fields.get("Priority", "optional"),
                fields.get("Section", ""),
            )
        return found

    @cached_property
    def architecture(self) -> str:
        """The architecture of the machine's own packages, which is that of the package dpkg."""
        status = (self.admin / "status").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^Package: dpkg\n(?:.+\n)*?Architecture: (\S+)$", status, re.MULTILINE)
        return found[1] if found else "amd64"

    @cached_property
    def _providers(self) -> dict[str, list[str]]:
        """For each virtual name the packages that provide it, by priority, then by name."""
        found: dict[str, list[str]] = {}
        ranked = sorted(self.packages.values(), key=lambda one: (_rank(one), one.name))
        for package in ranked:
            for name in package.provides:
                found.setdefault(name, []).append(package.name)
        return found

    def satisfied_by(self, names: tuple[str, ...]) -> str | None:
        """Returns the installed package that satisfies one dependency. For the first name that is installed
        or provided, it is the package of that name, or else the provider with the highest priority. None if
        no name is satisfied.
        """
        for name in names:
            if name in self.packages:
                return name
            if name in self._providers:
                return self._providers[name][0]
        return None

    def listed(self, package: str) -> list[str]:
        """Returns all paths that dpkg lists for a package; empty if it lists none."""
        bare = package.partition(":")[0]
        for name in (package, f"{package}:{self.architecture}", f"{bare}:all"):
            path = self.admin / "info" / f"{name}.list"
            if path.exists():
                return [line for line in path.read_text(errors="surrogateescape").split("\n") if line[1:]]
        return []

    def script(self, package: str, kind: str) -> str:
        """Returns the text of a package's maintainer script of that kind; empty if there is none."""
        for name in (package, f"{package}:{self.architecture}"):
            path = self.admin / "info" / f"{name}.{kind}"
            if path.exists():
                return path.read_text(errors="replace")
        return ""

    def owner(self, path: str) -> str | None:
        """Returns the package that installs a path; None if no package does. For a directory of several
        packages, returns the first by name.
        """
        return self._owners.get(self.canonical(path))

    @cached_property
    def _owners(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in sorted(self.packages):
            for path in self.listed(name):
                found.setdefault(self.canonical(self.diverted(name, path)), name)
        return found

    def canonical(self, path: str) -> str:
        """Returns the path below /usr of a file in a merged directory such as /bin; other paths
        as they are.
        """
        top = path[1:].partition("/")[0]
        return f"/usr{path}" if top in self._merged and path != f"/{top}" else path

    @cached_property
    def _merged(self) -> frozenset[str]:
        return frozenset(name for name in MERGED if (self.root / name).is_symlink())

    def diverted(self, package: str, path: str) -> str:
        """Returns the path at which a package's file is; it differs if another package has moved the file
        (dpkg-divert).
        """
        to, by = self._diversions.get(path, (path, package))
        return path if by == package else to

    def diverter(self, path: str) -> str | None:
        """Returns the package that has moved a file away; None if none has."""
        return self._diversions[path][1] if path in self._diversions else None

    @cached_property
    def _diversions(self) -> dict[str, tuple[str, str]]:
        path = self.admin / "diversions"
        lines = path.read_text().splitlines() if path.exists() else []
        return {lines[i]: (lines[i + 1], lines[i + 2]) for i in range(0, len(lines) - 2, 3)}

    @cached_property
    def alternatives(self) -> dict[str, Alternative]:
        """The alternatives by their links, such as /usr/bin/awk."""
        directory = self.admin / "alternatives"
        found = (_alternative(path) for path in sorted(directory.iterdir())) if directory.is_dir() else ()
        return {one.link: one for one in found if one}

    def real(self, path: str) -> Path:
        """Returns the path under which this process finds a path of the machine."""
        return self.root / path.lstrip("/")


def _rank(package: Package) -> int:
    return _PRIORITIES.index(package.priority) if package.priority in _PRIORITIES else len(_PRIORITIES)


def _relations(text: str) -> Iterator[tuple[str, ...]]:
    """Yields the names of each dependency: `a (>= 1) | b:any, c` -> (a, b), (c)."""
    for group in filter(None, text.split(",")):
        yield tuple(one.split()[0].partition(":")[0] for one in group.split("|") if one.strip())


def _alternative(path: Path) -> Alternative | None:
    """Reads a file of dpkg's alternatives (update-alternatives(1)): mode, link, pairs of other links; then
    each choice. None if it is incomplete.
    """
    head, _, rest = path.read_text().partition("\n\n")
    lines = head.split("\n")
    if len(lines) < 2:
        return None
    others = list(zip(lines[2::2], lines[3::2], strict=False))
    left, choices = rest.split("\n"), []
    while len(left) >= 2 + len(others) and left[0]:
        program, priority = left[0], int(left[1])
        targets = left[2 : 2 + len(others)]
        links = ((n, link, to) for (n, link), to in zip(others, targets, strict=True) if to)
        choices.append((program, priority, tuple(links)))
        left = left[2 + len(others) :]
    return Alternative(path.name, lines[1], tuple(choices))


def present(path: Path) -> bool:
    """Returns whether the path exists; a link whose target does not exist counts, too."""
    return os.path.lexists(path)
