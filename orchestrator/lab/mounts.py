"""Handles mounts of this mount namespace: bind-mounts a file read-only, lists mounts below a directory,
unmounts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8
# x86-64's numbers; linux/mount.h, linux/fcntl.h
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_FROM_HERE, EMPTY_PATH, AT_FDCWD = 1, 0o2000000, 4, 0x1000, -100
READ_ONLY = struct.pack("=4Q", 0x1 | 0x2 | 0x4 | 0x8, 0, 0, 0)  # RDONLY, NOSUID, NODEV, NOEXEC


def show(file: Path, place: Path) -> None:
    """Bind-mounts a file read-only on an existing path; raises OSError if the kernel refuses.

    The mount is made read-only before it is attached, because a daemon in another mount namespace receives
    new mounts, but no later changes of their flags. This needs Linux 5.12, as the nodes' sandbox does.
    """
    tree = _call(file, OPEN_TREE, AT_FDCWD, os.fsencode(file), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
    try:
        _call(file, MOUNT_SETATTR, tree, b"", EMPTY_PATH, READ_ONLY, len(READ_ONLY))
        _call(place, MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(place), MOVE_FROM_HERE)
    finally:
        os.close(tree)


def _call(path: Path, number: int, *arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
    return result


def file_system(path: str) -> int:
    """Returns the number of the type of the file system that holds a path (f_type of statfs(2)); raises
    OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    answer = (ctypes.c_ulong * 32)()  # struct statfs has 15 words on x86-64, and f_type is the first
    if libc.statfs(os.fsencode(path), answer) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return answer[0]


def unmount(path: Path) -> None:
    """Unmounts; programs with open files on the mount keep them. Raises OSError if the mount stays."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), MNT_DETACH) != 0:
        code = ctypes.get_errno()
        if path in below(path):
            raise OSError(code, os.strerror(code), str(path))


def clear(path: Path) -> None:
    """Removes every mount from this mount point; does nothing if there is none, or no such path. Raises
    OSError.

    It does not read the list of all mounts, which takes long with thousands of namespaces.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    while libc.umount2(os.fsencode(path), MNT_DETACH | UMOUNT_NOFOLLOW) == 0:
        pass
    if (code := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOENT):
        raise OSError(code, os.strerror(code), str(path))


def below(top: Path) -> list[Path]:
    """Returns the mount points at or below `top`, innermost first."""
    text = Path("/proc/self/mounts").read_text()
    points = [Path(line.split()[1].replace("\\040", " ")) for line in text.splitlines()]
    return [p for p in reversed(points) if p == top or top in p.parents]
