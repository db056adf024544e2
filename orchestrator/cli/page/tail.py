"""Reads the lines that are appended to a file of a run, through a function that fetches parts of the file."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

Fetch = Callable[..., Awaitable[dict[str, Any]]]  # path, offset, length -> {size, data?}
BEHIND_BYTES = 1 << 20  # if more new bytes than these wait, reading continues FIRST_BYTES before the end
FIRST_BYTES = 1 << 16  # bytes before the file's end at which reading starts


class Tail:
    """Follows a file from `first_bytes` before its end on, or from its beginning if `whole`.

    `skipped` counts bytes that were skipped later because too many were new.
    """

    def __init__(self, path: str, *, whole: bool = False, first_bytes: int = FIRST_BYTES) -> None:
        self.path = path
        self.skipped = 0
        self._offset: int | None = 0 if whole else None
        self._whole = whole
        self._first_bytes = first_bytes
        self._rest = b""
        self._cut = False  # whether the beginning of the next line was skipped

    async def lines(self, fetch: Fetch) -> list[str]:
        """Returns the lines that were completed since the last call; empty if the file does not exist. Skips
        to `first_bytes` before the end if more than BEHIND_BYTES are new, unless `whole`; starts again if the
        file has become shorter.
        """
        if self._offset is None:
            size = (await fetch(path=self.path, offset=0, length=0))["size"]
            if size is None:
                self._offset = 0  # once the file exists, all of it is new
                return []
            self._jump(max(0, size - self._first_bytes))
        data = self._rest + await self._new(fetch)
        *lines, self._rest = data.split(b"\n")
        if self._cut and lines:
            lines, self._cut = lines[1:], False
        return [line.decode(errors="replace") for line in lines]

    async def _new(self, fetch: Fetch) -> bytes:
        found = b""
        while True:
            assert self._offset is not None
            answer = await fetch(path=self.path, offset=self._offset)
            size = answer["size"]
            if size is None or size < self._offset:  # the file was removed or replaced
                self._offset, self._rest = 0, b""
                return found
            if not self._whole and size - self._offset > BEHIND_BYTES:
                self.skipped += size - self._first_bytes - self._offset
                self._jump(size - self._first_bytes)
                found = b""
                continue
            data = base64.b64decode(answer["data"])
            self._offset += len(data)
            found += data
            if not data or self._offset >= size:
                return found

    def _jump(self, offset: int) -> None:
        self._offset, self._rest, self._cut = offset, b"", offset > 0


async def whole(fetch: Fetch, path: str) -> bytes | None:
    """Returns the present content of a file; None if it does not exist."""
    found = b""
    while True:
        answer = await fetch(path=path, offset=len(found))
        if answer["size"] is None:
            return None
        data = base64.b64decode(answer["data"])
        found += data
        if not data or len(found) >= answer["size"]:
            return found
