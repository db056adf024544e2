"""Archives in cpio's `newc` form, as the kernel unpacks them: the same entries give the same bytes."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

TRAILER = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or symbolic link: `mode` with the kind of file, `data` its content or its target."""

    path: str  # without a leading slash
    mode: int
    data: bytes = b""


def file(path: str, data: bytes, mode: int = 0o644) -> Entry:
    return Entry(path.lstrip("/"), stat.S_IFREG | mode, data)


def directory(path: str, mode: int = 0o755) -> Entry:
    return Entry(path.strip("/"), stat.S_IFDIR | mode)


def link(path: str, target: str) -> Entry:
    return Entry(path.lstrip("/"), stat.S_IFLNK | 0o777, target.encode())


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive, sorted by path, with the directories that the paths need; owner root, time zero.

    Its length is a multiple of 4, so that another archive may follow.
    """
    by_path = {entry.path: entry for entry in entries}
    for path in list(by_path):
        for parent in PurePosixPath(path).parents:
            if str(parent) != "." and str(parent) not in by_path:
                by_path[str(parent)] = directory(str(parent))
    ordered = [by_path[path] for path in sorted(by_path)]
    parts = [_record(number, entry) for number, entry in enumerate(ordered, 1)]
    return b"".join([*parts, _record(0, Entry(TRAILER, 0))])


def _record(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name
    return head + bytes(-len(head) % 4) + entry.data + bytes(-len(entry.data) % 4)
