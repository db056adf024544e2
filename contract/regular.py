"""Reads and writes regular files in directories that others may have made, without following links.

Imports the standard library only: manifest.py imports it, and the lab process imports that.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # errors of writing only
_DEEPEST = 16  # directories; a run has 4
_KINDS = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


def open_read(path: Path) -> BufferedReader:
    """Opens the file for reading bytes; OSError if it is absent, a symbolic link or no regular file."""
    descriptor = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


@contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[IO[Any]]:
    """Yields a new binary file that replaces `path` atomically when the block ends.

    A symbolic link at `path` is replaced, not followed. After an exception the old file stays. `durable`: the
    new contents are on the disk before they replace the old ones, so that a power cut leaves one of both.
    An OSError of the block that names no file gets the name `path`; so does a library's error in Rust's words
    that says the disk has no room.
    """
    part = path.with_name(path.name + ".part")
    with suppress(FileNotFoundError):
        part.unlink()  # a killed writer left the part
    try:
        with os.fdopen(os.open(part, _NEW, 0o666), "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        if error.filename is None:  # the kernel names no file in an error of a write
            error.filename = str(path)
        raise
    except Exception as error:
        if (told := re.search(r"\(os error (\d+)\)", str(error))) and int(told[1]) in _NO_ROOM:
            raise OSError(int(told[1]), os.strerror(int(told[1])), str(path)) from error
        raise
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def write(path: Path, text: str, durable: bool = False) -> None:
    """Replaces the file atomically by one with the text as UTF-8, or creates it; `durable` as in
    `replacing`.
    """
    with replacing(path, durable) as file:
        file.write(text.encode())


def other_entry(directory: Path, deepest: int = _DEEPEST) -> str | None:
    """Returns a text "PATH is TYPE" for the first entry below the directory, by name, that is neither a
    regular file nor a directory; None without such an entry.

    `deepest`: the number of directory levels below the first that are searched.
    """
    return _other_entry(directory, "", deepest)


def _other_entry(directory: Path, below: str, levels: int) -> str | None:
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if levels and (other := _other_entry(Path(entry.path), f"{name}/", levels - 1)) is not None:
                return other
        elif not entry.is_file(follow_symlinks=False):
            kind = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
            return f"{name} is {_KINDS.get(kind, 'no regular file')}"
    return None
