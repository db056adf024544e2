"""Resolves named programs, files and packages to all packages and files that they need in turn."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ParamSpec

from orchestrator.kernel.virtual.root import elf
from orchestrator.kernel.virtual.root.dpkg import Database, present
from orchestrator.kernel.virtual.root.places import LIBRARIES, MODULES, Closure, Places
from orchestrator.kernel.virtual.root.unclosed import (
    NOT_SHOWN,
    OF_A_PACKAGE,
    REAL,
    Unclosed,
    Unfound,
    refuse,
    show,
)
from orchestrator.kernel.virtual.root.wanted import Wanted, interpreter_of, of_script
from orchestrator.lab.sandbox import SYSTEM

# Packages that only serve to install others; no program of a lab calls them.
_INSTALLERS = "adduser debconf debconf-2.0 dpkg init-system-helpers install-info lsb-base sysvinit-utils ucf"
INSTALLERS = frozenset(_INSTALLERS.split())
# Directories that belong to the lab, whatever the machine has there. The lab may make files in the later
# ones.
OWN, FRESH = ("/proc", "/sys", "/dev"), ("/run", "/tmp", "/var/tmp")
LOCAL = "/usr/local/"  # the part of /usr that Debian packages must not use (Debian policy, 9.1.2)
MOST_FILES = 200_000  # largest number of files below one path that the topology names
LARGEST_SCRIPT = 1 << 20  # bytes
DEEPEST_SCRIPT = 5  # longest chain of scripts as interpreters that Linux allows (fs/exec.c: exec_binprm)
P = ParamSpec("P")


def close(database: Database, wanted: Iterable[Wanted], base: Iterable[str]) -> Closure:
    """Returns the closure of `wanted` and of the packages `base`; raises Unclosed with everything that cannot
    be resolved.
    """
    closing = _Closing(database)
    for name in base:
        closing.package(name)
    # Shown paths come first, since a shown path can contain paths that others name.
    for one in sorted(wanted, key=lambda one: not one.shown):
        closing.add(one)
    if closing.unfound:
        raise Unclosed(closing.unfound)
    return closing.closure


class _Closing:
    def __init__(self, database: Database) -> None:
        self._db = database
        self.closure = Closure()
        self._places = Places(database, self.closure)
        self.unfound: list[Unfound] = []
        # directories of libraries that programs or environment variables name
        self._searched: dict[str, None] = {}

    def add(self, one: Wanted) -> None:
        """Adds one wanted thing with everything that it needs; adds missing things to `unfound`."""
        self.unfound += _missing(self._take, one)

    def _take(self, one: Wanted) -> None:
        if one.kind == "package":
            self.package(one.name)
        elif one.kind == "module":
            self._module(one)
        elif one.kind == "command":
            self._command(one)
        elif one.kind == "program":
            self._program(one)
        elif one.kind in ("library", "file"):
            self._file(one)
        elif one.kind == "libraries":
            self._searched[one.name] = None
        elif self._is_named(one):
            self.path(one.name, one.key)

    def package(self, name: str, chosen: bool = True) -> None:
        """Adds an installed package with its dependencies, and for a chosen development package also with the
        recommended ones. Does nothing if no installed package satisfies the name, or if that package is one
        of INSTALLERS.
        """
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
        """Adds a file or directory of this machine: its package, or the path itself with everything that it
        needs to start.
        """
        for step in self._places.steps(path):
            if step in self._db.alternatives:
                self.path(self._places.choice(step), key)
                return
            if (owner := self._db.owner(step)) is not None:
                self.package(owner)
            elif self._db.real(step).is_symlink() or not self._within_package(step):
                self._by_itself(step, key)

    def _within_package(self, path: str) -> bool:
        return self._db.real(path).is_dir() and self._db.owner(path) is not None

    def _by_itself(self, path: str, key: str) -> None:
        """Adds a path that belongs to no package, with the needs of its programs and libraries."""
        if path in self.closure.paths:
            return
        self.closure.paths[path] = key
        real = self._db.real(path)
        if real.is_dir() and not real.is_symlink():
            self.closure.looked.add(real)
        for file in _files(real, path, key):
            needs = elf.needs(file)
            missing = _missing(self._needs, file, needs, key)
            # A directory, or a library or text that is not executed, may remain unused, so its needs are
            # optional.
            if file == real or (needs.interpreter and file.stat().st_mode & 0o111):
                self.unfound += missing

    def _needs(self, file: Path, needs: elf.Needs, key: str) -> None:
        """Adds what a program outside of packages needs to start; raises Unclosed with everything that is
        missing.
        """
        script = file.suffix == ".py" or (bool(needs.interpreter) and not needs.elf)
        if needs.interpreter or needs.libraries or script:
            self.closure.looked.add(file)
        root = str(self._db.root).rstrip("/")
        self._searched |= {os.path.normpath(place.removeprefix(root)): None for place in needs.searched}
        missing: list[Unfound] = []
        if needs.interpreter:
            missing += _missing(self._interpreter, needs.interpreter, file, key)
        for library in needs.libraries:
            missing += _missing(self._linked, library, file, key)
        if script and file.stat().st_size < LARGEST_SCRIPT:
            for one in of_script(file.name, file.read_text(errors="replace"), key):
                if one.kind in ("command", "module") and not one.must:  # the interpreter was added before
                    missing += _missing(self._take, one)
        if missing:
            raise Unclosed(one.of(str(file)) for one in missing)

    def _linked(self, library: str, file: Path, key: str) -> None:
        """Adds a library that a program or another library is linked to; Unclosed if it is in no searched
        directory.
        """
        places = (*self._searched, *LIBRARIES)
        found = next((p for d in places if self._db.real(p := f"{d}/{library}").exists()), None)
        if found is None:
            rule = f"needs the library {library}, which is in none of {', '.join(places)}"
            remedy = f"{OF_A_PACKAGE}, name its directory in LD_LIBRARY_PATH of `env`, or {REAL}"
            raise refuse(key, str(file), rule, remedy)
        self.path(found, key)

    def _interpreter(self, words: tuple[str, ...], file: Path, key: str) -> None:
        name, bare = interpreter_of(words)
        place = self._places.found(bare) if bare else name
        if bare:
            self._take(Wanted(name, "program", key, must=True))
        if place is None or (why := self._places.fault(place)) is not None:
            rule = f"its interpreter {bare or name} {'is not on this machine' if place is None else why}"
            raise refuse(key, str(file), rule, f"{OF_A_PACKAGE}, or {REAL}")
        if not self._places.seen(place):
            rule = f"its interpreter is {place}: {NOT_SHOWN}"
            raise refuse(key, str(file), rule, f"{show(place)}, or {REAL}")
        self._take(Wanted(place, "program", key, must=True))

    def _program(self, one: Wanted) -> None:
        """Adds a program by its path; raises Unclosed if the program cannot run, or belongs to a Python
        environment that the topology does not name.

        Skips a path of the lab's own (below /proc, /sys, /dev), and a missing path below /run, /tmp and
        /var/tmp. Without `one.must` (the lab may never start the program), also skips a program that cannot
        run.
        """
        made = _below(one.name, FRESH) and not present(self._db.real(one.name))  # the lab makes the file
        why = self._places.fault(one.name)
        if _below(one.name, OWN) or made or (why is not None and not one.must):
            return
        if why is not None:
            remedy = (
                "name the program in it" if "directory" in why else f"correct the path, or {OF_A_PACKAGE}"
            )
            raise refuse(one.key, one.name, why, remedy)
        environment = self._places.environment(one.name)
        if environment is not None and not self._places.named(environment):
            rule = f"is of the Python environment {environment}, whose files virtual time does not show"
            raise refuse(one.key, one.name, rule, f"{show(environment)}, or {REAL}")
        self._can_start(one)
        self.path(one.name, one.key)

    def _can_start(self, one: Wanted) -> None:
        """Raises Unclosed for a file that Linux cannot execute. Does not open files of packages, since these
        can be executed.
        """
        end = self._places.end(one.name)
        for _ in range(DEEPEST_SCRIPT):
            if self._db.owner(end) is not None:
                return
            if (fault := elf.fault(self._db.real(end))) is not None:
                raise refuse(one.key, end, *fault)  # the program could not start in real time, either
            words = elf.needs(self._db.real(end))
            if words.elf or not words.interpreter or self._places.fault(words.interpreter[0]) is not None:
                return
            end = self._places.end(words.interpreter[0])
        rule = f"is a script whose interpreters are scripts, too, over more than {DEEPEST_SCRIPT} of them"
        raise refuse(one.key, one.name, rule, "name a program after #!")

    def _command(self, one: Wanted) -> None:
        place = self._places.found(one.name)
        if place is None:  # otherwise it is a built-in command of the shell, or a program that the lab makes
            if one.must:
                remedy = one.remedy or f"{OF_A_PACKAGE}, or write its path"
                raise refuse(one.key, one.name, "is not on this machine", remedy)
            return
        if not self._places.seen(place):
            remedy = f"name its path, {show(place)}, or {REAL}"
            raise refuse(one.key, one.name, f"is {place}: {NOT_SHOWN}", remedy)
        self._program(Wanted(place, "program", one.key, must=True))

    def _module(self, one: Wanted) -> None:
        names = (f"{MODULES}/{one.name}/__init__.py", f"{MODULES}/{one.name}.py", f"{MODULES}/{one.name}")
        owner = next((found for name in names if (found := self._db.owner(name))), None)
        if owner is not None:
            self.package(owner)
            return
        place = self._places.local_module(one.name)
        if place is not None and one.name not in sys.stdlib_module_names and not self._places.named(place):
            rule = f"the module is {place}: {NOT_SHOWN}"
            raise refuse(one.key, one.name, rule, f"{show(place)}, or {REAL}")

    def _file(self, one: Wanted) -> None:
        """Adds a library by its name or a file by its path; raises Unclosed for a missing one only if
        `one.must`.
        """
        places = [f"{directory}/{one.name}" for directory in (*self._searched, *LIBRARIES)]
        places = [one.name] if one.kind == "file" else places
        found = next((place for place in places if self._db.real(place).exists()), None)
        if found is not None:
            self.path(found, one.key)
        elif one.must:
            raise refuse(one.key, one.name, "is not on this machine", one.remedy)

    def _is_named(self, one: Wanted) -> bool:
        """Returns whether to add a path. It must exist, and the lab must not make it itself. Without
        `one.must`, it must also belong to a package, or be a file that everybody can read, outside system
        directories (/usr/local does not count as one) and without a dotted part. Raises Unclosed for a top
        directory such as /etc with `one.must`.
        """
        if one.name in ("/", "/usr", "/etc", "/var", "/opt") and one.must:
            rule = "holds files that are no input of a run in virtual time"
            raise refuse(one.key, one.name, rule, "name the files that the programs read")
        real = self._db.real(one.name)
        if _below(one.name, OWN) or not present(real):
            return False
        if one.must or self._places.owned(one.name):
            return True
        dotted = any(part.startswith(".") for part in one.name.split("/"))
        if dotted or (_below(one.name, SYSTEM) and not one.name.startswith(LOCAL)):
            return False
        return real.is_file() and bool(real.stat().st_mode & stat.S_IROTH)


def _missing(take: Callable[P, None], *what: P.args, **more: P.kwargs) -> tuple[Unfound, ...]:
    """Calls `take` and returns the things that it did not find (the content of its Unclosed); empty if it
    found everything.
    """
    try:
        take(*what, **more)
    except Unclosed as error:
        return error.found
    return ()


def _below(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def _files(real: Path, path: str, key: str) -> list[Path]:
    """Returns the file itself, or all files below a directory, sorted, without links; raises Unclosed beyond
    MOST_FILES.
    """
    if not real.is_dir() or real.is_symlink():
        return [real] if real.is_file() and not real.is_symlink() else []
    found = list(_walked(real))
    if len(found) > MOST_FILES:
        rule = f"has more than {MOST_FILES} files"
        raise refuse(key, path, rule, "name those that the programs read")
    return sorted(one for one in found if one.is_file() and not one.is_symlink())


def _walked(real: Path) -> Iterator[Path]:
    for top, _, names in os.walk(real):
        yield from (Path(top, name) for name in names)
