"""The cache of closed roots: archives by the hash of their content, and the roots by request."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator.kernel.uml.binaries import cache_dir
from orchestrator.kernel.virtual.root.dpkg import Database
from orchestrator.kernel.virtual.root.places import LIBRARIES, LOCAL_LIBRARY, SEARCHED
from orchestrator.kernel.virtual.root.wanted import Wanted

MOST = 8  # archives of roots, the last used; one has 60 to 400 MB
IN_USE_S = 3600  # a lab that starts meanwhile still has to read its archives
_STATE = ("status", "info", "alternatives", "diversions")  # of dpkg: changed with each package

Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Known:
    """A root that was made: its archive, its packages' hashes, paths beside them, the files as they were.

    `libraries`: of its packages, by name, for the loader's cache.
    """

    archive: str
    inputs: dict[str, str]
    paths: dict[str, str]
    files: dict[str, list[int]]
    libraries: dict[str, str]


class Kept:
    """`directory`: in the user's cache."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or cache_dir().parent / "roots"

    def known(self, asked: str) -> Known | None:
        """The cached root of a request; None if one of its files has changed."""
        try:
            found = Known(**json.loads((self.directory / f"{asked}.json").read_text()))
        except (OSError, ValueError, TypeError):  # none yet, or of another form
            return None
        if not (self.directory / found.archive).exists():
            return None
        if any(stamp(Path(path)) != tuple(then) for path, then in found.files.items()):
            return None
        os.utime(self.directory / found.archive)
        return found

    def know(self, asked: str, root: Known) -> None:
        """Stores the root of a request."""
        self._write(f"{asked}.json", lambda to: to.write(json.dumps(asdict(root)).encode()))

    def archive(self, name: str, write: Callable[[BinaryIO], object]) -> Path:
        """The archive of that name, written if it is missing; removes the least recently used ones beyond the
        limit.
        """
        path = self.directory / name
        if not path.exists():
            self._write(name, write)
            self._forget()
        os.utime(path)
        return path

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Writes a whole file or none, also if other processes write it at the same time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        part = self.directory / f"{name}.part-{os.getpid()}"
        try:
            with part.open("wb") as to:
                write(to)
            part.replace(self.directory / name)
        finally:
            part.unlink(missing_ok=True)

    def _forget(self) -> None:
        for pattern, most in (("*.cpio", MOST), ("*.json", 10 * MOST)):
            found = sorted(self.directory.glob(pattern), key=_used)
            for path in found[:-most]:
                if _used(path) < time.time() - IN_USE_S:
                    path.unlink(missing_ok=True)


def _used(path: Path) -> float:
    """Time of the last use; 0 if another process has removed the file."""
    seen = stamp(path)
    return seen[1] / 1e9 if seen else 0.0


def stamp(path: Path) -> Stamp | None:
    """Values that change with a file, found without reading it."""
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_mode


def signature(database: Database, wanted: Iterable[Wanted], more: Iterable[str]) -> str:
    """Hash of all inputs that decide a root's packages; with an equal signature the cached root is valid."""
    said: list[object] = [*more, *(stamp(database.admin / name) for name in _STATE)]
    said += [stamp(database.real(f"/etc/{name}")) for name in ("passwd", "group")]
    said += map(stamp, sorted(database.real(LOCAL_LIBRARY).glob("python3*/dist-packages")))
    searched = {"command": SEARCHED, "library": LIBRARIES}
    for one in wanted:
        places = [f"{top}/{one.name}" for top in searched.get(one.kind, ())]
        places += [one.name] if one.name.startswith("/") else []
        seen = [(os.path.realpath(place), stamp(place)) for place in map(database.real, places)]
        said.append((one.kind, one.name, one.key, seen))
    return hashlib.sha256(repr(said).encode()).hexdigest()[:32]
