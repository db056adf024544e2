"""Finds named things on the machine: paths link by link, commands, modules; and checks whether
files can run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from orchestrator.kernel.virtual.root.dpkg import Database, present

SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
LIBRARIES = ("/usr/local/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib")
MODULES = "/usr/lib/python3/dist-packages"
LOCAL_LIBRARY = "/usr/local/lib"  # pip installs for all users below it, in pythonX.Y/dist-packages
MOST_LINKS = 40  # the kernel's own limit (include/linux/namei.h: MAXSYMLINKS)


@dataclass
class Closure:
    """Names of packages, and paths outside of packages, each with the topology key that names it.

    looked: those of these files and directories whose content decided what else the closure contains.
    """

    packages: set[str] = field(default_factory=set)
    paths: dict[str, str] = field(default_factory=dict)
    looked: set[Path] = field(default_factory=set)


class Places:
    """Finds paths, commands and modules on one machine, for a closure that is being built."""

    def __init__(self, database: Database, closure: Closure) -> None:
        self._db = database
        self._closure = closure

    def steps(self, path: str) -> Iterator[str]:
        """Yields the path, then the target of each link in turn; ends at a link that has alternatives."""
        for _ in range(MOST_LINKS):
            path = self._db.canonical(self._resolved_above(path))
            yield path
            real = self._db.real(path)
            if not real.is_symlink() or path in self._db.alternatives:
                return
            path = os.path.normpath(Path(path).parent / real.readlink())

    def _resolved_above(self, path: str) -> str:
        """Returns the path with links of its directories resolved, as dpkg lists it."""
        above, name = os.path.split(path)
        real = os.path.realpath(self._db.real(above))
        prefix = str(self._db.root)
        inside = real[len(prefix) :] if prefix != "/" and real.startswith(prefix) else real
        return str(Path(inside or "/", name))

    def choice(self, link: str) -> str:
        """Returns the target of an alternative: the program of highest priority whose package is in the
        closure, or else of highest priority. The administrator's choice does not count.
        """
        choices = sorted(self._db.alternatives[link].choices, key=lambda one: (-one[1], one[0]))
        there = [one for one in choices if self._db.owner(one[0]) in self._closure.packages]
        return (there or choices)[0][0]

    def end(self, path: str) -> str:
        """Returns the path to which all links of a path lead."""
        *_, last = self.steps(path)
        return self.end(self.choice(last)) if last in self._db.alternatives else last

    def fault(self, path: str) -> str | None:
        """Returns why a node cannot execute the path as a program; None if it can."""
        end = self.end(path)
        real = self._db.real(end)
        leads = "" if end == self._db.canonical(path) else f"leads to {end}, which "
        if not present(real):
            return f"{leads}is not on this machine"
        if real.is_symlink():
            return "is a link that leads round in a circle"
        if real.is_dir():
            return f"{leads}is a directory"
        mode = real.stat().st_mode
        if not stat.S_ISREG(mode) or not mode & 0o111:
            return f"{leads}is no program: it is not executable"
        if self._db.owner(end) is not None and not self._readable(end):
            return f"{leads}may not be read by everybody; virtual time shows no such file of a package"
        return None

    def _readable(self, path: str) -> bool:
        above = (
            self._db.real(str(one)).stat().st_mode & 0o005 == 0o005 for one in PurePosixPath(path).parents
        )
        return all(above) and bool(self._db.real(path).stat().st_mode & stat.S_IROTH)

    def found(self, name: str) -> str | None:
        """Returns the path of a command on this machine; None if no searched directory has it."""
        for place in (f"{directory}/{name}" for directory in SEARCHED):
            real = self._db.real(self.end(place))
            if real.is_file() and not real.is_symlink() and real.stat().st_mode & 0o111:
                return place
        return None

    def owned(self, path: str) -> bool:
        """Returns whether a package contains the path or one to which its links lead, or one of these is a
        link of update-alternatives.
        """
        return any(step in self._db.alternatives or self._db.owner(step) for step in self.steps(path))

    def named(self, path: str) -> bool:
        """Returns whether the topology names the path, or a directory that contains it."""
        return any(str(one) in self._closure.paths for one in (Path(path), *Path(path).parents))

    def seen(self, path: str) -> bool:
        """Returns whether virtual time can show a lab the path: a Debian package of this machine contains the
        path or one to which its links lead, one of these is a link of update-alternatives, or the topology
        names one of these or a directory above it.
        """
        return self.owned(path) or any(self.named(step) for step in self.steps(path))

    def environment(self, path: str) -> str | None:
        """Returns the virtual environment of Python that contains a program (PEP 405); None if no environment
        contains it.
        """
        above = str(Path(path).parent.parent)
        return above if self._db.real(f"{above}/pyvenv.cfg").exists() else None

    def local_module(self, name: str) -> str | None:
        """Returns the path of a Python module that belongs to no package; None if there is none, or if an
        environment that the topology names has it.
        """
        named = (self._db.real(path) for path in self._closure.paths)
        if any(next(top.glob(f"lib/python3*/site-packages/{name}*"), None) for top in named if top.is_dir()):
            return None
        for directory in self.local_modules:
            for last in (name, f"{name}.py"):
                if self._db.real(f"{directory}/{last}").exists():
                    return f"{directory}/{last}"
        return None

    @cached_property
    def local_modules(self) -> tuple[str, ...]:
        """Directories where Debian's Python searches for modules, those of pip first."""
        local = sorted(self._db.real(LOCAL_LIBRARY).glob("python3*/dist-packages"))
        return (*(f"{LOCAL_LIBRARY}/{one.parent.name}/{one.name}" for one in local), MODULES)
