"""Mounts of this mount namespace: a file shown elsewhere, which stand below a directory, taking one away."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096  # linux/mount.h


def show(file: Path, place: Path) -> None:
    """The file at another place that is there, too, read only; OSError where that cannot be."""
    libc = ctypes.CDLL(None, use_errno=True)
    only = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
    for flags in (MS_BIND, only):
        if libc.mount(os.fsencode(file), os.fsencode(place), None, flags, None) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(place))


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
