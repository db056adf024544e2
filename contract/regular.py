"""Reads and writes regular files in directories that others may have made, without following links.

Imports the standard library only: manifest.py imports it, and the lab process imports that.
"""

from __future__ import annotations

import errno
import json
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
MOST_BYTES = 1 << 28  # limit of a file that is read as a whole; the plan of 1,000 nodes has 2**23
_HOLLOW_BYTES = 1 << 30  # a file above this size with less than a 1,000th of it on the disk is hollow
_DEEPEST = 16  # levels of directories; a run has 4
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


def open_lock(path: Path) -> IO[bytes]:
    """Opens a lock file for flock, and creates it; OSError as `open_read`. Does not change its contents."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return os.fdopen(descriptor, "r+b")


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Returns the contents of a regular file; OSError as `open_read`, and if it has more than `most`
    bytes.
    """
    with open_read(path) as file:
        content = file.read(most + 1) if (size := os.fstat(file.fileno()).st_size) <= most else b""
    if max(size, len(content)) > most:
        raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
    return content


def read_text(path: Path) -> str:
    """Returns the contents of a file in UTF-8; OSError as `read_bytes`, ValueError for other bytes."""
    return read_bytes(path).decode()


def read_json(path: Path) -> Any:
    """Returns the parsed contents of a JSON file; OSError as `read_bytes`, ValueError if it is no JSON or is
    nested too deeply to be read.
    """
    return parsed(read_text(path))


def parsed(text: str) -> Any:
    """Returns a JSON text as Python's values; ValueError if it is no JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Adds the file's name to errors of writes in the block: to an OSError without a name, and to an error of
    a Rust library about a full disk, which becomes an OSError. An OSError of such a library lacks its number;
    it gets the number in its text.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            number = _told(error) or errno.EIO
            raise OSError(number, os.strerror(number), str(path)) from error
        if error.filename is None:  # an error of write(2) does not contain the file's name
            error.filename = str(path)
        raise
    except Exception as error:
        if (number := _told(error)) in _NO_ROOM:
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


def _told(error: Exception) -> int:
    """Returns the errno that the error text of a Rust library contains; 0 if the text has no errno."""
    told = re.search(r"\(os error (\d+)\)", str(error))
    return int(told[1]) if told else 0


@contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[IO[Any]]:
    """Yields a new binary file that replaces `path` atomically when the block ends.

    A symbolic link at `path` is replaced, not followed. After an exception the old file stays. `durable`: the
    new contents are on the disk before they replace the old ones, so that a power cut leaves one of both.
    Errors get the name `path` as in `named`.
    """
    part = path.with_name(path.name + ".part")
    with suppress(FileNotFoundError):
        part.unlink()  # a killed writer left the part
    try:
        with named(path):
            with os.fdopen(os.open(part, _NEW, 0o666), "wb") as file:
                yield file
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def write(path: Path, text: str, durable: bool = False) -> None:
    """Replaces the file atomically by one with the text as UTF-8, or creates it; `durable` as in
    `replacing`.
    """
    with replacing(path, durable) as file:
        file.write(text.encode())


def hollow(about: os.stat_result) -> bool:
    """Returns whether a file has more than 1 GiB of which less than a 1,000th is on the disk. No run writes
    such a file; to read it would take hours, and to make it costs nothing.
    """
    return about.st_size > _HOLLOW_BYTES and about.st_blocks * 512 * 1000 < about.st_size


def other_entry(directory: Path, deepest: int = _DEEPEST) -> str | None:
    """Returns a text "PATH is TYPE" for the first entry below the directory, by name, that is neither a
    regular file nor a directory, or is hollow; None without such an entry.

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
        elif hollow(entry.stat(follow_symlinks=False)):
            return f"{name} is a hole of {entry.stat(follow_symlinks=False).st_size:,} bytes"
    return None
