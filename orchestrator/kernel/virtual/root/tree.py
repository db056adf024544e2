"""Makes the archive entries of a closure's files, and their hashes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from orchestrator.images.cpio import Entry
from orchestrator.kernel.virtual.root.dpkg import Database, present
from orchestrator.kernel.virtual.root.places import Closure
from orchestrator.kernel.virtual.root.unclosed import Unclosed, Unfound

# Files that no program of a lab reads, and that dpkg may leave out (path-exclude in dpkg.cfg(5)).
LEFT_OUT = tuple(f"usr/share/{name}/" for name in ("doc", "man", "info", "locale", "lintian", "bug", "gnome"))
BYTECODE = "__pycache__"  # left out, because bytecode can be older than its source
BESIDE = "site-packages"  # left out: packages outside the standard library of the lab process's Python
FIRST_OF_SERVICES = 100  # account numbers below this are the same everywhere (Debian's policy, 9.2.2)
_SHORT = 16  # hexadecimal digits of a hash that a manifest names


@dataclass(frozen=True, slots=True)
class Source:
    """A package or a named path: its entries, and the hash over all of its files."""

    name: str  # `package NAME` or `path PATH`
    described: str  # version and hash
    entries: tuple[Entry, ...]


def of_packages(database: Database, closure: Closure) -> list[Source]:
    """Returns the sources of all packages of a closure, sorted by name, without documentation and
    translations (LEFT_OUT) and without files that not every user can read.
    """
    found = []
    for name in sorted(closure.packages):
        entries = tuple(_of_package(database, name, closure))
        found.append(
            Source(f"package {name}", f"{database.packages[name].version} {digest(entries)}", entries)
        )
    return found


def of_paths(database: Database, closure: Closure, passed_over: str = "", library: str = "") -> list[Source]:
    """Returns the sources of all named paths outside of packages, sorted by path, without __pycache__
    directories; raises Unclosed for unreadable ones.

    passed_over: a path to skip; library: the library of the lab process's Python, of which BESIDE is left
    out.
    """
    found, unfound = [], []
    for path, key in sorted(closure.paths.items()):
        if path == passed_over:
            continue
        try:
            entries = tuple(_of_path(database, path, (BYTECODE, BESIDE) if path == library else (BYTECODE,)))
            found.append(Source(f"path {path}", digest(entries), entries))
        except OSError as error:
            rule = f"{error.filename or path} cannot be read ({error.strerror})"
            unfound.append(Unfound(key, path, rule, "let this user read it, or name other files"))
    if unfound:
        raise Unclosed(unfound)
    return found


def _of_package(database: Database, name: str, closure: Closure) -> Iterator[Entry]:
    for path in sorted(database.listed(name)):
        lies = database.diverted(name, path)
        if lies != path and _diverts(database, path, closure):
            path = lies
        place = database.canonical(path).lstrip("/")
        if place.startswith(LEFT_OUT) or not place:
            continue
        entry = _entry(database.real(lies), place)
        if entry is not None and not _hidden(database, database.canonical(lies)):
            yield entry


def _diverts(database: Database, path: str, closure: Closure) -> bool:
    """Returns whether the package that moves a file away is in the closure; otherwise the file keeps its own
    path.
    """
    return database.diverter(path) in closure.packages


def _hidden(database: Database, path: str) -> bool:
    """Returns whether a directory above the path is closed to other users. Root in a lab sees only what every
    user sees.
    """
    above = (str(one) for one in PurePosixPath(path).parents if str(one) != "/")
    return any(database.real(one).stat().st_mode & 0o005 != 0o005 for one in above)


def _of_path(database: Database, path: str, passed_over: tuple[str, ...]) -> Iterator[Entry]:
    """Yields the entry of a path that the topology names. For a directory, also yields everything below it,
    except directories whose name is in `passed_over`.
    """
    real = database.real(path)
    first = _entry(real, path.lstrip("/"), named=True)
    if first is not None:
        yield first
    if stat.S_ISDIR(first.mode if first else 0):
        for top, directories, files in os.walk(real):
            directories[:] = (name for name in directories if name not in passed_over)
            for name in sorted((*directories, *files)):
                below = Path(top, name)
                inside = str(below.relative_to(real))
                entry = _entry(below, f"{path}/{inside}".lstrip("/"), named=True)
                if entry is not None:
                    yield entry


def _entry(real: Path, place: str, named: bool = False) -> Entry | None:
    """Returns the entry of one path; None if it does not exist, is a file that not everybody can read, or is
    neither file, directory nor link.

    named: the topology names the path, so a file is included whatever its mode is.
    """
    if not present(real):
        return None
    about = real.lstat()
    uid, gid = _fixed(about.st_uid), _fixed(about.st_gid)
    if stat.S_ISLNK(about.st_mode):
        return Entry(place, stat.S_IFLNK | 0o777, os.fsencode(real.readlink()))
    if stat.S_ISDIR(about.st_mode):
        return Entry(place, about.st_mode, uid=uid, gid=gid)
    if not stat.S_ISREG(about.st_mode) or not (named or about.st_mode & stat.S_IROTH):
        return None
    return Entry(place, about.st_mode, source=real, uid=uid, gid=gid)


def _fixed(number: int) -> int:
    """Returns a user or group number below 100, which is the same on every Debian; 0 (root) for any other."""
    return number if number < FIRST_OF_SERVICES else 0


def digest(entries: Iterable[Entry]) -> str:
    """Returns a hash over paths, modes, owners and contents of entries."""
    whole = hashlib.sha256()
    for one in entries:
        data = one.source.read_bytes() if one.source is not None else one.data
        bare = replace(one, data=b"", source=None)
        whole.update(f"{bare.path} {bare.mode:o} {bare.uid} {bare.gid}\n".encode(errors="surrogateescape"))
        whole.update(hashlib.sha256(data).digest())
    return whole.hexdigest()[:_SHORT]
