"""Packs the directory of a run or campaign into one file, compares both, and removes the directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from orchestrator.campaign.held import Entry, EntryError, insist_it_has_ended, remove

LEVEL = 6  # gzip's own default; a capture of small messages shrinks to a fifth or less
PIECE = 1 << 20


def archive(held: Entry, to: Path) -> Path:
    """Packs a run into TO/LAB.RUN.tar.gz, a campaign into TO/NAME.tar.gz; then removes the directory.

    Returns the path of the file. Raises EntryError, and keeps the directory, if the run or campaign is
    running, if the file exists or cannot be written, if `to` lies in the directory, or if a file differs from
    the archive.
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
        written = _write(held.path, part)
        _compare(held.path, written, part)
    except OSError as error:
        part.unlink(missing_ok=True)
        free = shutil.disk_usage(to).free / 1e6
        raise EntryError(
            f"{target}: cannot be written ({error.strerror or error}), {free:.0f} MB are free there; free "
            "some, or name another directory with --to; the run is as it was"
        ) from error
    except EntryError:
        part.unlink(missing_ok=True)
        raise
    part.rename(target)
    remove(held)
    return target


def _name(held: Entry) -> str:
    return held.path.name if held.kind == "campaign" else f"{held.path.parent.name}.{held.path.name}"


def _write(directory: Path, part: Path) -> dict[str, str]:
    """Writes the archive `part` and syncs it; returns name in the archive -> SHA-256 of the file on the disk.

    Raises FileExistsError if `part` exists.
    """
    hashes: dict[str, str] = {}
    with part.open("xb") as file:
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
    """Reads the archive back; raises EntryError unless it holds the files and hashes of `written`."""
    found: dict[str, str] = {}
    with tarfile.open(part) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                found[member.name] = _hash(content)
    # A hard link to another file of the run is a member without content; runs have none.
    if wrong := sorted(n for n in written.keys() | found.keys() if written.get(n) != found.get(n)):
        raise EntryError(
            f"{directory}: {wrong[0]} differs in the archive from the file (of {len(wrong)}): it changed "
            "meanwhile; is somebody writing there? The run is as it was"
        )


def _below(directory: Path) -> Iterator[Path]:
    yield directory
    yield from sorted(directory.rglob("*"))


def _hash(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := content.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()
