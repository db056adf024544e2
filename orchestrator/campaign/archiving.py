"""Packs the directory of a run or campaign into one file, verifies the file against the directory, and
removes the directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from orchestrator.campaign.held import Entry, EntryError, insist_it_has_ended, remove
from orchestrator.campaign.journal import sync_directory

LEVEL = 6  # gzip's own default; a capture of small messages shrinks to a fifth or less
PIECE = 1 << 20


def archive(held: Entry, to: Path) -> Path:
    """Packs a run into TO/LAB.RUN.tar.gz, a campaign into TO/NAME.tar.gz; then removes the directory.

    Returns the path of the file. Raises EntryError, and keeps the directory, if the run or campaign is
    running, if the file exists, cannot be written or is being written by another process, if `to` lies in the
    directory, or if a file differs from the archive, was added or was removed meanwhile.
    """
    insist_it_has_ended(held)
    target = to / f"{_name(held)}.tar.gz"
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EntryError(
            f"{to}: cannot be made: {error.strerror}; name another directory with --to"
        ) from error
    if target.exists():
        raise EntryError(f"{target}: is there already; move it, or name another directory with --to")
    if to.resolve().is_relative_to(held.path.resolve()):
        raise EntryError(f"{to}: lies in {held.path}, which is removed; name another directory with --to")
    part = target.with_name(target.name + ".part")
    try:
        with _locked(part) as file:
            if target.exists():  # another process has written it meanwhile
                raise EntryError(f"{target}: is there already; move it, or name another directory with --to")
            before = _files(held.path)
            written = _write(held.path, file)
            _compare(held.path, written, part)
            if changed := sorted(before ^ _files(held.path)):
                raise _differs(held.path, len(changed), changed[0][0], "differs from what was packed")
            part.rename(target)
            # the archive's entry must be on the disk before the run's directory is removed
            sync_directory(to)
    except OSError as error:
        free = shutil.disk_usage(to).free / 1e6
        raise EntryError(
            f"{target}: cannot be written ({error.strerror or error}), {free:.0f} MB are free there; free "
            "some, or name another directory with --to; the run is as it was"
        ) from error
    remove(held)
    return target


@contextmanager
def _locked(part: Path) -> Iterator[IO[bytes]]:
    """Opens the unfinished archive `part`, empty and locked; removes it if the context ends with an
    exception.

    Replaces a file of a killed process, since that holds no lock. Raises EntryError if a process is writing
    the file.
    """
    with part.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EntryError(
                f"{part}: another process is writing it; wait, or name another directory with --to"
            ) from None
        if not part.exists() or not os.path.samestat(part.stat(), os.fstat(file.fileno())):
            raise EntryError(f"{part}: another process has just finished it; list again")
        file.truncate(0)
        try:
            yield file
        except BaseException:  # also for Ctrl-C
            part.unlink(missing_ok=True)
            raise


def _name(held: Entry) -> str:
    return held.path.name if held.kind == "campaign" else f"{held.path.parent.name}.{held.path.name}"


def _write(directory: Path, file: IO[bytes]) -> dict[str, str]:
    """Writes the archive and syncs it; returns name in the archive -> SHA-256 of each regular file on the
    disk.
    """
    hashes: dict[str, str] = {}
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=LEVEL, format=tarfile.PAX_FORMAT) as tar:
        for path in _below(directory):
            name = str(Path(directory.name) / path.relative_to(directory))
            tar.add(path, name, recursive=False)
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as content:
                    hashes[name] = _hash(content)
    file.flush()
    os.fsync(file.fileno())
    return hashes


def _compare(directory: Path, written: dict[str, str], part: Path) -> None:
    """Reads the archive back; raises EntryError unless its regular files have the names and SHA-256 of
    `written`.
    """
    found: dict[str, str] = {}
    with tarfile.open(part) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                found[member.name] = _hash(content)
    # In the archive, a hard link to another file of the run would be a member without content; runs have no
    # hard links.
    if wrong := sorted(n for n in written.keys() | found.keys() if written.get(n) != found.get(n)):
        raise _differs(directory, len(wrong), wrong[0], "differs in the archive from the file")


def _differs(directory: Path, of: int, name: str, how: str) -> EntryError:
    return EntryError(
        f"{directory}: {name} {how} (of {of}): it changed meanwhile; does a program write there? The run is "
        "unchanged"
    )


def _files(directory: Path) -> set[tuple[str, int, int]]:
    """Returns (path, size in bytes, time of the last change in ns) of each entry below the directory that is
    not a directory.
    """
    found = set()
    for path in _below(directory):
        about = path.lstat()
        if not stat.S_ISDIR(about.st_mode):
            found.add((str(path.relative_to(directory)), about.st_size, about.st_mtime_ns))
    return found


def _below(directory: Path) -> Iterator[Path]:
    yield directory
    yield from sorted(directory.rglob("*"))


def _hash(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := content.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()
