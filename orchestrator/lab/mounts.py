"""Mounts of this mount namespace: which stand below a directory, and taking one away."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8


def unmount(path: Path) -> None:
    """Take the mount off its point, for whoever still uses it later; OSError where it stays."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), MNT_DETACH) != 0:
        code = ctypes.get_errno()
        if path in below(path):
            raise OSError(code, os.strerror(code), str(path))


def clear(path: Path) -> None:
    """Take every mount off this very point; one that has none is fine.

    The list of all mounts is not read: with thousands of namespaces that takes longer than all else.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    while libc.umount2(os.fsencode(path), MNT_DETACH | UMOUNT_NOFOLLOW) == 0:
        pass
    if (code := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOENT):
        raise OSError(code, os.strerror(code), str(path))


def below(top: Path) -> list[Path]:
    """Mount points at or below `top`, innermost first."""
    text = Path("/proc/self/mounts").read_text()
    points = [Path(line.split()[1].replace("\\040", " ")) for line in text.splitlines()]
    return [p for p in reversed(points) if p == top or top in p.parents]
