"""Caches closed roots: archives by the hash of their content, and the data of roots by request."""

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

MOST = 8  # largest number of archives that are kept, those used last; each has 60 to 400 MB
IN_USE_S = 3600  # s; an archive used within this time stays, because a lab that starts may still read it
_STATE = ("status", "info", "alternatives", "diversions")  # dpkg's files that change with each package

Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Known:
    """The data of a root that was made: its archive, the hashes of its inputs, the paths outside packages,
    and the stamps of its files, which show changes.

    libraries: paths of its packages' libraries by name, for the loader's cache.
    """

    archive: str
    inputs: dict[str, str]
    paths: dict[str, str]
    files: dict[str, list[int]]
    libraries: dict[str, str]


class Kept:
    """The cache of closed roots in `directory` (default: in the user's cache)."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or cache_dir().parent / "roots"

    def known(self, asked: str) -> Known | None:
        """Returns the cached root of a request; None if there is none or one of its files has changed."""
        try:
            found = Known(**json.loads((self.directory / f"{asked}.json").read_text()))
        except (OSError, ValueError, TypeError):  # nothing is cached yet, or in another form
            return None
        if not (self.directory / found.archive).exists():
            return None
        if any(stamp(Path(path)) != tuple(then) for path, then in found.files.items()):
            return None
        os.utime(self.directory / found.archive)
        return found

    def know(self, asked: str, root: Known) -> None:
        """Stores the root of a request in the cache."""
        self._write(f"{asked}.json", lambda to: to.write(json.dumps(asdict(root)).encode()))

    def archive(self, name: str, write: Callable[[BinaryIO], object]) -> Path:
        """Returns the archive of that name, written by `write` if missing. A new one removes the least
        recently used archives beyond MOST, and request files beyond ten times as many, except those used
        within the last hour.
        """
        path = self.directory / name
        if not path.exists():
            self._write(name, write)
            self._forget()
        os.utime(path)
        return path

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Writes either the whole file or nothing, even if other processes write the same file at the same
        time.
        """
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
    """Returns the time of the file's last use in seconds; 0 if another process has removed it."""
    seen = stamp(path)
    return seen[1] / 1e9 if seen else 0.0


def stamp(path: Path) -> Stamp | None:
    """Returns values that change when a file changes, without reading it; None if it does not exist."""
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_mode


def signature(database: Database, wanted: Iterable[Wanted], more: Iterable[str]) -> str:
    """Returns a hash of all inputs that decide a root's packages; a cached root with the same signature is
    valid.
    """
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
