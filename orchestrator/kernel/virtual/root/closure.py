"""From what is named to packages and files: whose each file is, and what it needs in turn."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.virtual.root import elf
from orchestrator.kernel.virtual.root.dpkg import Database, present
from orchestrator.kernel.virtual.root.wanted import Wanted, of_script
from orchestrator.lab.sandbox import SYSTEM

SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
LIBRARIES = ("/usr/local/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib")
MODULES = "/usr/lib/python3/dist-packages"
# They only install other packages: no program of a lab calls them.
_INSTALLERS = "adduser debconf debconf-2.0 dpkg init-system-helpers install-info lsb-base sysvinit-utils ucf"
INSTALLERS = frozenset(_INSTALLERS.split())
# Seen by a lab as its own, whatever the machine has there.
FRESH = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp")
MOST_FILES = 200_000  # that a path which the topology names may hold


@dataclass
class Closure:
    """Names of packages, and paths outside of packages, each with the key of the topology that names it."""

    packages: set[str] = field(default_factory=set)
    paths: dict[str, str] = field(default_factory=dict)


def close(database: Database, wanted: Iterable[Wanted], base: Iterable[str]) -> Closure:
    """The closure of what is wanted and of the packages `base`; KernelError, with the key, if it has none."""
    closing = _Closing(database)
    for name in base:
        closing.package(name)
    for one in wanted:
        closing.add(one)
    return closing.closure


class _Closing:
    def __init__(self, database: Database) -> None:
        self._db = database
        self.closure = Closure()

    def add(self, one: Wanted) -> None:
        """One more, with all that it needs."""
        if one.kind == "package":
            self.package(one.name)
        elif one.kind == "module":
            self._module(one)
        elif one.kind == "command":
            self._command(one)
        elif one.kind == "library":
            self._library(one)
        elif self._is_named(one):
            self.path(one.name, one.key)

    def package(self, name: str, chosen: bool = True) -> None:
        """An installed package with what it depends on; a compiler recommends its library's headers."""
        satisfied = self._db.satisfied_by((name,))
        if satisfied is None or satisfied in self.closure.packages or satisfied in INSTALLERS:
            return
        self.closure.packages.add(satisfied)
        package = self._db.packages[satisfied]
        more = package.recommends if package.section == "devel" else ()
        for names in (*package.depends, *more):
            if (needed := self._db.satisfied_by(names)) is not None:
                self.package(needed, chosen=False)

    def path(self, path: str, key: str) -> None:
        """A file or directory of the machine's: of a package, or by itself with what it needs to start."""
        for step in self._steps(path):
            if step in self._db.alternatives:
                self.path(self._choice(step), key)
                return
            if (owner := self._db.owner(step)) is not None:
                self.package(owner)
            elif self._db.real(step).is_symlink() or not self._within_package(step):
                self._by_itself(step, key)

    def _steps(self, path: str) -> Iterator[str]:
        """The path, and what it leads to link by link."""
        for _ in range(40):  # as the kernel's bound of links (include/linux/namei.h: MAXSYMLINKS)
            path = self._db.canonical(self._resolved_above(path))
            yield path
            real = self._db.real(path)
            if not real.is_symlink() or path in self._db.alternatives:
                return
            path = os.path.normpath(Path(path).parent / real.readlink())

    def _resolved_above(self, path: str) -> str:
        """With the directories' links followed: what dpkg lists is below directories of its own."""
        above, name = os.path.split(path)
        real = os.path.realpath(self._db.real(above))
        prefix = str(self._db.root)
        inside = real[len(prefix) :] if prefix != "/" and real.startswith(prefix) else real
        return str(Path(inside or "/", name))

    def _choice(self, link: str) -> str:
        """Of an alternative: what the closure has, else Debian's first; not what an administrator has set."""
        choices = sorted(self._db.alternatives[link].choices, key=lambda one: (-one[1], one[0]))
        there = [one for one in choices if self._db.owner(one[0]) in self.closure.packages]
        return (there or choices)[0][0]

    def _within_package(self, path: str) -> bool:
        return self._db.real(path).is_dir() and self._db.owner(path) is not None

    def _by_itself(self, path: str, key: str) -> None:
        """A path outside of packages, which the topology names."""
        if path in self.closure.paths:
            return
        self.closure.paths[path] = key
        for file in _files(self._db.real(path), path, key):
            self._needs(file, key)

    def _needs(self, file: Path, key: str) -> None:
        """What a program outside of packages needs to start."""
        needs = elf.needs(file)
        if needs.interpreter:
            for one in _interpreters(needs.interpreter, key):
                self._interpreter(one, file)
        for library in needs.libraries:
            places = (*needs.searched, *LIBRARIES)
            found = next((p for d in places if self._db.real(p := f"{d}/{library}").exists()), None)
            if found is None:
                raise KernelError(
                    f"{key}: {file}: the library {library} that it needs is in none of {', '.join(places)}; "
                    "install the package that has it, or use --time real"
                )
            self.path(found, key)
        if file.suffix == ".py" or needs.interpreter[:1] not in ((), ("/lib64/ld-linux-x86-64.so.2",)):
            text = file.read_text(errors="replace") if file.stat().st_size < 1 << 20 else ""
            for one in of_script(file.name, text, key):
                if one.kind != "path":
                    self.add(Wanted(one.name, one.kind, one.key))

    def _interpreter(self, one: Wanted, file: Path) -> None:
        place = one.name if one.kind == "path" else self._found(one.name)
        known = place is not None and present(self._db.real(place))
        if place is None or not known or not (self._owned(place) or place in self.closure.paths):
            why = "no package has it" if known else "it is not on this machine"
            raise KernelError(
                f"{one.key}: {file}: its interpreter {one.name} is not in the lab's closed root ({why}); "
                "install it as a package, name it in the node's `mounts`, or use --time real"
            )
        self.path(place, one.key)

    def _command(self, one: Wanted) -> None:
        place = self._found(one.name)
        if place is None:
            return  # a shell's own word, or a program that the lab makes; starting it says what is missing
        if not self._owned(place) and place not in self.closure.paths:
            if not one.must:
                return
            raise KernelError(
                f"{one.key}: {one.name} is {place}, which no package has and virtual time does not show; "
                f"write {place}, name it in the node's `mounts`, or use --time real"
            )
        self.path(place, one.key)

    def _found(self, name: str) -> str | None:
        places = (f"{directory}/{name}" for directory in SEARCHED)
        return next((p for p in places if os.access(self._db.real(p), os.X_OK)), None)

    def _owned(self, path: str) -> bool:
        return any(step in self._db.alternatives or self._db.owner(step) for step in self._steps(path))

    def _module(self, one: Wanted) -> None:
        names = (f"{MODULES}/{one.name}/__init__.py", f"{MODULES}/{one.name}.py", f"{MODULES}/{one.name}")
        owner = next((found for name in names if (found := self._db.owner(name))), None)
        if owner is not None:
            self.package(owner)

    def _library(self, one: Wanted) -> None:
        places = (f"{directory}/{one.name}" for directory in LIBRARIES)
        found = next((place for place in places if self._owned(place)), None)
        if found is not None:
            self.path(found, one.key)

    def _is_named(self, one: Wanted) -> bool:
        """Whether a path is one to look at: there, not made anew for the lab, and readable for everybody."""
        if one.name in ("/", "/usr", "/etc", "/var", "/opt") and one.must:
            rule = "holds what is no input of a run in virtual time"
            raise KernelError(f"{one.key}: {one.name} {rule}; name the files that the programs read")
        real = self._db.real(one.name)
        if any(one.name == top or one.name.startswith(f"{top}/") for top in FRESH[:3]):
            return False
        if not present(real):
            return False
        if one.must or self._owned(one.name):
            return True
        dotted = any(part.startswith(".") for part in one.name.split("/"))
        if dotted or one.name.startswith(tuple(f"{top}/" for top in SYSTEM)):
            return False
        return real.is_file() and bool(real.stat().st_mode & stat.S_IROTH)


def _interpreters(words: tuple[str, ...], key: str) -> Iterator[Wanted]:
    yield Wanted(words[0], "path", key)
    if words[0].endswith("/env") and len(words) > 1:
        yield Wanted(words[-1], "command", key)


def _files(real: Path, path: str, key: str) -> list[Path]:
    """The file itself, or all files below a directory, sorted; KernelError beyond the bound."""
    if not real.is_dir() or real.is_symlink():
        return [real] if real.is_file() and not real.is_symlink() else []
    found = [Path(top, name) for top, _, names in os.walk(real) for name in names]
    if len(found) > MOST_FILES:
        raise KernelError(
            f"{key}: {path} has more than {MOST_FILES} files; name those that the programs read"
        )
    return sorted(one for one in found if one.is_file() and not one.is_symlink())
