"""Makes small ISO 9660 images with files in their root, for NoCloud; equal files give equal bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping

SECTOR = 2048
# The numbers of sectors (ECMA-119): 16 unused ones, then primary descriptor, terminator, two path tables,
# root directory and files.
_DESCRIPTOR, _TABLES, _ROOT, _FILES = 16, 18, 20, 21
_NO_DATE = b"0" * 16 + b"\0"


def image(label: str, files: Mapping[str, bytes]) -> bytes:
    """Returns the bytes of an image with these files: name -> content. Linux shows the names in lower case.

    Raises ValueError if the directory of all files does not fit into one sector of 2048 bytes.
    """
    entries, contents, sector = [_entry(b"\0", _ROOT, SECTOR, 2), _entry(b"\1", _ROOT, SECTOR, 2)], [], _FILES
    for name in sorted(files):
        data = files[name]
        entries.append(_entry(name.encode(), sector, len(data), 0))
        contents.append(_filled(data))
        sector += -(-len(data) // SECTOR)
    root = b"".join(entries)
    if len(root) > SECTOR:
        raise ValueError(f"{len(files)} files are too many for one directory sector")
    head = [
        bytes(_DESCRIPTOR * SECTOR),
        _filled(_primary(label, sector)),
        _filled(b"\xffCD001\1"),
        _filled(_table("<")),
        _filled(_table(">")),
        _filled(root),
    ]
    return b"".join([*head, *contents])


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % SECTOR)


def _both(value: int) -> bytes:
    return struct.pack("<I", value) + struct.pack(">I", value)


def _both16(value: int) -> bytes:
    return struct.pack("<H", value) + struct.pack(">H", value)


def _entry(name: bytes, sector: int, size: int, flags: int) -> bytes:
    """Returns the directory record of a file, dated 1 January 1970, so that equal files give equal bytes."""
    date = bytes([70, 1, 1, 0, 0, 0, 0])
    body = b"\0" + _both(sector) + _both(size) + date + bytes([flags, 0, 0]) + _both16(1)
    record = body + bytes([len(name)]) + name
    record += bytes((len(record) + 1) % 2)
    return bytes([len(record) + 1]) + record


def _table(order: str) -> bytes:
    return struct.pack(f"{order}BBIH", 1, 0, _ROOT, 1) + b"\0\0"


def _primary(label: str, sectors: int) -> bytes:
    tables = struct.pack("<II", _TABLES, 0) + struct.pack(">II", _TABLES + 1, 0)
    return b"".join(
        [
            b"\1CD001\1\0",
            b" " * 32,
            label.encode().ljust(32),
            bytes(8),
            _both(sectors),
            bytes(32),
            _both16(1),
            _both16(1),
            _both16(SECTOR),
            _both(10),
            tables,
            _entry(b"\0", _ROOT, SECTOR, 2),
            b" " * (128 * 4 + 37 * 3),
            _NO_DATE * 4,
            b"\1",
        ]
    )
