"""Limits the size of each read of a file, because tarfile holds headers in memory, whatever their length."""

from __future__ import annotations

from typing import IO

from orchestrator.images.errors import ImageError

MOST_AT_ONCE = 16 << 20  # most bytes of one read; a longer header is not valid


class Bounded:
    """A file for tarfile that raises ImageError for a read of more than MOST_AT_ONCE bytes or without a
    size.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MOST_AT_ONCE:
            raise ImageError(f"has a header of {size} bytes; the image is not to be trusted")
        return self._file.read(size)
