"""Serves parts of files of the run directory, and of no other file, to clients of the control socket."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any

from orchestrator.lab.errors import LabError

MOST_BYTES = 256 * 1024  # largest number of bytes in one answer


def part(run_dir: Path, path: Any, offset: Any = 0, length: Any = None) -> dict[str, Any]:
    """Returns {size: size of the whole file, data: base64 of up to MOST_BYTES from `offset` on}; size is None
    if there is no such file.

    path: relative to `run_dir`. length: None stands for MOST_BYTES. Raises LabError if the path leads out of
    that directory (by dots or by a link) or to something other than a regular file, and for arguments of a
    wrong type.
    """
    length = MOST_BYTES if length is None else length
    numbers = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in (offset, length))
    if not isinstance(path, str) or not path or "\0" in path or not numbers:
        raise LabError("fetch: give path, a file of the run directory, and offset and length, at least 0")
    root = run_dir.resolve()
    file = (root / path).resolve()
    if root not in file.parents:
        raise LabError(f"fetch: path: {path}: leads out of the run directory; name a file below it")
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return {"size": None}
    try:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            raise LabError(f"fetch: path: {path}: is no regular file")
        data = os.pread(opened, min(length, MOST_BYTES), offset)
    finally:
        os.close(opened)
    return {"size": about.st_size, "data": base64.b64encode(data).decode()}
