"""Writes and reads the small JSON files of the directory that all accounts share. Each is written completely
or not at all, and its owner is the account that it describes.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

LONGEST_BYTES = 4096  # bytes of the longest file


def write(final: Path, uid: int, data: dict[str, Any]) -> None:
    """Writes a file of the account `uid` by renaming. If that fails, raises OSError and leaves nothing."""
    part = final.with_name(f".{uid}.{final.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o644)
            if os.geteuid() != uid:
                os.fchown(descriptor, uid, -1)
            json.dump(data, file)
            file.flush()
            os.fsync(descriptor)
        part.rename(final)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path: Path) -> tuple[int, dict[str, Any]]:
    """Returns the owner's user id and the content; ValueError unless the file is a plain file of at most
    LONGEST_BYTES with a JSON object.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LONGEST_BYTES:
            raise ValueError
        data = json.loads(file.read(LONGEST_BYTES + 1))
    if not isinstance(data, dict):
        raise ValueError  # so that every unusable content raises the same class of error
    return about.st_uid, data
