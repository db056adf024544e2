"""Packs a run or a campaign into one compressed file, compares both, and then removes the directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from orchestrator.campaign.held import Held, HeldError, insist_it_has_ended, remove

LEVEL = 6  # gzip's own default; a capture of MQTT messages shrinks to a fifth or less
PIECE = 1 << 20


def archive(held: Held, to: Path) -> Path:
    """Writes TO/LAB.RUN.tar.gz (of a campaign TO/NAME.tar.gz), reads it back, and removes the directory.

    HeldError if it is running, the file exists, or there is no room; the directory stays then.
    """
    insist_it_has_ended(held)
    target = to / f"{_name(held)}.tar.gz"
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeldError(
            f"{to}: cannot be made: {error.strerror}; name another directory with --to"
        ) from error
    if target.exists():
        raise HeldError(f"{target}: is there already; move it, or name another directory with --to")
    if to.resolve().is_relative_to(held.path.resolve()):
        raise HeldError(f"{to}: lies in {held.path}, which is removed; name another directory with --to")
    part = target.with_name(target.name + ".part")
    try:
        written = _write(held.path, part)
        _compare(held.path, written, part)
    except OSError as error:
        part.unlink(missing_ok=True)
        free = shutil.disk_usage(to).free / 1e6
        raise HeldError(
            f"{target}: cannot be written ({error.strerror or error}), {free:.0f} MB are free there; free "
            "some, or name another directory with --to; the run is as it was"
        ) from error
    except HeldError:
        part.unlink(missing_ok=True)
        raise
    part.rename(target)
    remove(held)
    return target


def _name(held: Held) -> str:
    return held.path.name if held.kind == "campaign" else f"{held.path.parent.name}.{held.path.name}"


def _write(directory: Path, part: Path) -> dict[str, str]:
    """Writes the archive, synced; returns the SHA-256 of each file as it was read, by its name there."""
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
    """HeldError unless the archive holds exactly these files with these contents."""
    found: dict[str, str] = {}
    with tarfile.open(part) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                found[member.name] = _hash(content)
    # A hard link to another file of the run is a member without content; runs have none.
    if wrong := sorted(n for n in written.keys() | found.keys() if written.get(n) != found.get(n)):
        raise HeldError(
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
