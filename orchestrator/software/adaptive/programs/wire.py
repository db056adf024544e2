"""Writes and reads the header of messages and probes: a word, the flow, the number, the length."""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct("!4sIII")
MESSAGE, PROBE = b"vmsg", b"vprb"


class Head(NamedTuple):
    """A header; `flow` is 0 for a probe, whose `seq` counts probes."""

    word: bytes
    flow: int
    seq: int
    length: int  # of the whole message, header included


def message(flow: int, seq: int, length: int) -> bytes:
    return HEADER.pack(MESSAGE, flow, seq, length) + bytes(length - HEADER.size)


def probe(seq: int) -> bytes:
    return HEADER.pack(PROBE, 0, seq, HEADER.size)


def head(data: bytes | bytearray) -> Head | None:
    """Returns the header that `data` begins with; None if it is too short."""
    return Head._make(HEADER.unpack_from(data)) if len(data) >= HEADER.size else None


def is_message(found: Head) -> bool:
    return found.word == MESSAGE and found.length >= HEADER.size
