"""Limits the size of each read of a file, because tarfile holds headers in memory, whatever their length.
Also limits how far a compressed file is read, because a few bytes may stand for terabytes.
"""

from __future__ import annotations

from typing import IO

from orchestrator.images.errors import ImageError

MOST_AT_ONCE = 16 << 20  # most bytes of one read; a longer header is not valid


class Bounded:
    """A file for tarfile that raises ImageError for a read of more than MOST_AT_ONCE bytes or without a size,
    and for a position beyond byte `most` (None: no limit).
    """

    def __init__(self, file: IO[bytes], most: int | None = None) -> None:
        self._file = file
        self._most = most
        self.tell, self.seekable = file.tell, file.seekable

    def seek(self, position: int, whence: int = 0) -> int:
        """Moves to a position; `whence` as in io.IOBase.seek."""
        if self._most is not None and position > self._most:
            raise ImageError(f"has more than {self._most >> 30} GiB; use a smaller image")
        return self._file.seek(position, whence)

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MOST_AT_ONCE:
            raise ImageError(f"has a header of {size} bytes; the image is not to be trusted")
        return self._file.read(size)
