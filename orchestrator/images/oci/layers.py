"""Unpacks layers over one another into a directory, by file descriptors, so that nothing outside it changes.

Raises ImageError for paths that go up or through a link, devices, hard links to the outside, too many, too
large or too deep files, and too much CPU time. Symbolic links may have any target, since this module does not
follow them.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from orchestrator.images.errors import ImageError
from orchestrator.images.oci.archive import BROKEN, GZIP
from orchestrator.images.oci.bounded import Bounded

MOST_BYTES = 4 << 30  # largest size in bytes of all layers, uncompressed
MOST_ENTRIES = 500_000
MOST_DEPTH = 128  # largest number of names in a path
MOST_CPU_S = 600.0  # CPU time of this process for all layers; 4 GiB take about 60 s
CHUNK = 1 << 20
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree:
    """A directory into which layers are unpacked, one after the other; `finish` sets the modes of
    directories.
    """

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root = root
        self._scratch = scratch  # path of a temporary file for the uncompressed layer
        self._bytes = 0
        self._entries = 0
        self._until_s = time.process_time() + MOST_CPU_S
        self._files_bytes = 0  # bytes of all files of all layers, holes included
        self._modes: dict[tuple[str, ...], int] = {}
        self._owners = os.geteuid() == 0

    def add(self, compressed: IO[bytes], diff_id: str) -> None:
        """Unpacks one layer, plain or gzipped; compares the SHA-256 of its uncompressed tar with `diff_id`
        before it changes the directory. Raises ImageError, after which the directory may hold a part of the
        layer.
        """
        try:
            self._expand(compressed, diff_id)
            with self._scratch.open("rb") as file:
                self._whiteouts(file)
                file.seek(0)
                self._contents(file)
        except ImageError as error:
            raise ImageError(f"layer {diff_id[:12]}: {error}") from None
        except BROKEN as error:
            raise ImageError(f"layer {diff_id[:12]}: is no tar ({error}); save it again") from None
        except OSError as error:
            raise ImageError(
                f"layer {diff_id[:12]}: {error.strerror or error}: {error.filename}; see `df`"
            ) from None
        finally:
            self._scratch.unlink(missing_ok=True)

    def finish(self) -> None:
        """Sets the modes of directories after the last layer, because no file can be added to a read-only
        directory.
        """
        for parts, mode in sorted(self._modes.items(), key=lambda item: -len(item[0])):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._inside(parts) as directory:
                os.fchmod(directory, mode)

    def _expand(self, compressed: IO[bytes], diff_id: str) -> None:
        head = compressed.read(4)
        compressed.seek(0)
        if head == b"\x28\xb5\x2f\xfd":
            remedy = "skopeo copy --dest-compress-format gzip, or docker save"
            raise ImageError(f"is compressed by zstd, which is not read; save it with {remedy}")
        source: Any = gzip.GzipFile(fileobj=compressed) if head[:2] == GZIP else compressed
        total = hashlib.sha256()
        with self._scratch.open("wb") as file:
            while chunk := source.read(CHUNK):
                self._insist_on_time()
                self._bytes += len(chunk)
                if self._bytes > MOST_BYTES:
                    raise ImageError(f"the layers have more than {MOST_BYTES >> 30} GiB; use a smaller image")
                total.update(chunk)
                file.write(chunk)
        if total.hexdigest() != diff_id:
            raise ImageError(
                f"its content has SHA-256 {total.hexdigest()}; the archive is damaged, save it again"
            )

    def _members(self, file: IO[bytes]) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, tuple[str, ...]]]:
        with tarfile.open(fileobj=Bounded(file), mode="r:") as tar:  # type: ignore[call-overload]
            for member in tar:
                self._insist_on_time()
                if member.size < 0:
                    raise ImageError(
                        f"{member.name!r}: has {member.size} bytes; the image is not to be trusted"
                    )
                yield tar, member, _parts(member.name)
                tar.members = []  # drops the members that tarfile keeps, which are not needed again

    def _insist_on_time(self) -> None:
        if time.process_time() > self._until_s:
            raise ImageError(f"its layers take more than {MOST_CPU_S:.0f} s of CPU; use a smaller image")

    def _whiteouts(self, file: IO[bytes]) -> None:
        """Applies the layer's whiteouts first, because they delete only files of the layers below."""
        for _, _, parts in self._members(file):
            self._entries += 1
            if self._entries > MOST_ENTRIES:
                raise ImageError(f"the layers have more than {MOST_ENTRIES} files; use a smaller image")
            if not parts or not parts[-1].startswith(WHITEOUT):
                continue
            with contextlib.suppress(FileNotFoundError), self._inside(parts[:-1]) as directory:
                if parts[-1] == OPAQUE:
                    for name in os.listdir(directory):
                        _remove(directory, name)
                elif name := parts[-1].removeprefix(WHITEOUT):
                    if name in (".", ".."):
                        raise ImageError(
                            f"{'/'.join(parts)}: hides what is above; the image is not to be trusted"
                        )
                    _remove(directory, name)

    def _contents(self, file: IO[bytes]) -> None:
        for tar, member, parts in self._members(file):
            if parts and parts[-1].startswith(WHITEOUT):
                continue
            if not parts:  # the entry is the root itself
                if not member.isdir():
                    raise ImageError(f"{member.name!r}: is the root, and no directory; the image is broken")
                self._modes[()] = member.mode & 0o7777
                continue
            self._files_bytes += member.size if member.isreg() else 0
            if self._files_bytes > MOST_BYTES:  # a small layer may contain a sparse file of that size
                raise ImageError(f"its files have more than {MOST_BYTES >> 30} GiB; use a smaller image")
            self._parents(parts[:-1])
            with self._inside(parts[:-1]) as directory:
                self._one(tar, member, parts, directory)

    def _one(
        self, tar: tarfile.TarFile, member: tarfile.TarInfo, parts: tuple[str, ...], directory: int
    ) -> None:
        name = parts[-1]
        if member.isdir():
            if not _is_directory(directory, name):
                _remove(directory, name)
                os.mkdir(name, 0o700, dir_fd=directory)
            self._modes[parts] = member.mode & 0o7777
            self._own(directory, name, member)
            return
        if not (member.isreg() or member.issym() or member.islnk()):
            rule = (
                "is a device" if member.isdev() and not member.isfifo() else "is no file, directory or link"
            )
            raise ImageError(f"{member.name}: {rule}, which no node gets; leave it out of the image")
        if member.islnk():
            self._hard_link(member, parts, directory)
            return
        _remove(directory, name)
        if member.issym():
            os.symlink(member.linkname, name, dir_fd=directory)
            self._own(directory, name, member)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "wb") as file:
            source = tar.extractfile(member)
            if source is not None:
                shutil.copyfileobj(source, file, CHUNK)
            file.flush()
            self._own(directory, name, member)
            os.fchmod(file.fileno(), member.mode & 0o7777)
            os.utime(file.fileno(), (member.mtime, member.mtime))

    def _hard_link(self, member: tarfile.TarInfo, parts: tuple[str, ...], directory: int) -> None:
        target = _parts(member.linkname)
        with self._inside(target[:-1]) as there:
            try:
                about = os.stat(target[-1], dir_fd=there, follow_symlinks=False)
            except (FileNotFoundError, IndexError):
                raise ImageError(
                    f"{member.name}: is a link to {member.linkname}, not there; build the image again"
                ) from None
            if stat.S_ISDIR(about.st_mode):
                raise ImageError(
                    f"{member.name}: is a link to the directory {member.linkname}; build the image again"
                )
            if target == parts:
                return
            _remove(directory, parts[-1])
            os.link(target[-1], parts[-1], src_dir_fd=there, dst_dir_fd=directory, follow_symlinks=False)

    def _own(self, directory: int, name: str, member: tarfile.TarInfo) -> None:
        if self._owners:  # only root can set owners; otherwise all files belong to the user
            os.chown(name, member.uid, member.gid, dir_fd=directory, follow_symlinks=False)

    def _parents(self, parts: tuple[str, ...]) -> None:
        """Makes the parent directories that are missing, with mode 755."""
        with self._inside(parts, missing=0o755):
            pass

    @contextlib.contextmanager
    def _inside(self, parts: tuple[str, ...], missing: int | None = None) -> Iterator[int]:
        """Opens a directory of the tree, name by name; makes absent ones if `missing` gives their mode.
        Raises ImageError for a link in the path.
        """
        directory = os.open(self._root, DIRECTORY)
        try:
            for depth, name in enumerate(parts, 1):
                if missing is not None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, missing, dir_fd=directory)
                try:
                    inner = os.open(name, DIRECTORY, dir_fd=directory)
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        rule = "goes through a link or a file"
                        raise ImageError(
                            f"{'/'.join(parts[:depth])}: a path {rule}; the image is not to be trusted"
                        ) from None
                    raise
                os.close(directory)
                directory = inner
            yield directory
        finally:
            os.close(directory)


def _parts(name: str) -> tuple[str, ...]:
    """Returns the parts of a path below the root; raises ImageError if it is absolute or goes up."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ImageError(f"{name!r}: leads out of the image; it is not to be trusted")
    if len(parts) > MOST_DEPTH:
        raise ImageError(
            f"{name[:40]!r}...: has more than {MOST_DEPTH} names; the image is not to be trusted"
        )
    return parts


def _is_directory(directory: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _remove(directory: int, name: str) -> None:
    """Removes the entry of that name. For a link it removes the link itself, never the link's target."""
    if _is_directory(directory, name):
        shutil.rmtree(name, dir_fd=directory)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
