"""Writes cpio archives in the `newc` format, which the kernel unpacks as an initramfs.

The same entries always give the same bytes.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

TRAILER = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory, symbolic link or device in an archive.

    mode: the permissions with the type of file, as st_mode. data: the content of a file, or the target of a
    link. source: a file of this machine with the content, in place of `data`. device: the device number, as
    st_rdev.
    """

    path: str  # without a leading slash
    mode: int
    data: bytes = b""
    source: Path | None = None
    uid: int = 0
    gid: int = 0
    device: int = 0


def file(path: str, data: bytes, mode: int = 0o644) -> Entry:
    return Entry(path.lstrip("/"), stat.S_IFREG | mode, data)


def directory(path: str, mode: int = 0o755) -> Entry:
    return Entry(path.strip("/"), stat.S_IFDIR | mode)


def link(path: str, target: str) -> Entry:
    return Entry(path.lstrip("/"), stat.S_IFLNK | 0o777, os.fsencode(target))


def archive(entries: Iterable[Entry]) -> bytes:
    """Returns the bytes of an archive of the entries (see `write`)."""
    whole = io.BytesIO()
    write(entries, whole)
    return whole.getvalue()


def write(entries: Iterable[Entry], to: BinaryIO) -> None:
    """Writes an archive of the entries, sorted by path; of entries with the same path, the last one counts.

    Parent directories without an entry are added with mode 755. All modification times are 0. The length is
    a multiple of 4 bytes, so that another archive may follow.
    """
    by_path = {entry.path: entry for entry in entries}
    for path in list(by_path):
        for parent in PurePosixPath(path).parents:
            if str(parent) != "." and str(parent) not in by_path:
                by_path[str(parent)] = directory(str(parent))
    for number, path in enumerate(sorted(by_path), 1):
        _record(number, by_path[path], to)
    _record(0, Entry(TRAILER, 0), to)


def _record(inode: int, entry: Entry, to: BinaryIO) -> None:
    name = os.fsencode(entry.path) + b"\0"
    data = entry.source.read_bytes() if entry.source is not None else entry.data
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    device = (os.major(entry.device), os.minor(entry.device))
    owner = (entry.uid, entry.gid)
    numbers = (inode, entry.mode, *owner, links, 0, len(data), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name
    to.write(head + bytes(-len(head) % 4))
    to.write(data)
    to.write(bytes(-len(data) % 4))
