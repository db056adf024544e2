"""Reads what a program outside of packages needs to start: its loader and libraries, or its interpreter."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

# The constants are those of elf(5), for 64-bit little-endian files.
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_X86_64 = 62  # e_machine of programs that the lab's kernel can run
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True, slots=True)
class Needs:
    """The things that a file needs to start.

    interpreter: words after `#!`, or the loader's path. libraries: names. searched: directories for libraries
    that the file itself names. elf: True for a program or library of machine code.
    """

    interpreter: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    elf: bool = False


def needs(path: Path) -> Needs:
    """Returns the needs of a file; empty ones if it is neither a 64-bit ELF file nor a script."""
    with path.open("rb") as file:
        head = file.read(2)
        if head == b"#!":
            return Needs(tuple(file.readline(4096).decode(errors="replace").split()))
        if head != b"\x7fE":
            return Needs()
    try:
        return _elf(path.read_bytes(), path)
    except (struct.error, ValueError, IndexError):  # another word size, or not an ELF file
        return Needs()


def fault(path: Path) -> tuple[str, str] | None:
    """Returns why Linux cannot execute an executable file, and the remedy; None if it can.

    Does not check files that have neither an ELF header nor `#!`, because a shell runs such a text itself.
    """
    with path.open("rb") as file:
        head = file.read(4096)
    if head[:2] == b"#!":
        return _fault_of_script(head.partition(b"\n")[0])
    if head[:4] != b"\x7fELF":
        return None
    kind, machine = head[4:6], int.from_bytes(head[18:20], "little")
    if len(head) >= 64 and (kind != b"\x02\x01" or machine != _X86_64):
        return f"is a program for another processor (ELF machine {machine})", "name one for x86-64"
    try:
        if len(head) < 64:
            raise ValueError
        _elf(path.read_bytes(), path)
    except (struct.error, ValueError, IndexError, StopIteration):
        return "is cut short: its ELF head leads beyond its end", "copy it again"
    return None


def _fault_of_script(first: bytes) -> tuple[str, str] | None:
    words = first[2:].split()
    if first.endswith(b"\r"):
        rule = (
            "ends its first line with a carriage return, which Linux reads as part of the interpreter's name"
        )
        return rule, "save it with the line ends of Unix"
    if not words:
        return "names no interpreter after #!", "write its path there"
    if words[0].endswith(b"/env") and all(word.startswith(b"-") or b"=" in word for word in words[1:]):
        return "names no command for env to start", "write the interpreter's name after env"
    return None


def is_library(path: Path) -> bool:
    """Returns whether the file is a shared object or a position-independent program (ELF type DYN)."""
    with path.open("rb") as file:
        head = file.read(18)
    return head[:6] == b"\x7fELF\x02\x01" and head[16:18] == b"\x03\x00"


def _elf(data: bytes, path: Path) -> Needs:
    if data[:6] != b"\x7fELF\x02\x01":
        return Needs()
    offset, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    heads = [struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count)]
    loader = tuple(data[h[2] : h[2] + h[5]].split(b"\0")[0].decode() for h in heads if h[0] == _PT_INTERP)
    loads = [(h[3], h[2], h[5]) for h in heads if h[0] == _PT_LOAD]
    dynamic = next((h for h in heads if h[0] == _PT_DYNAMIC), None)
    if dynamic is None:
        return Needs(loader, elf=True)
    pairs = [struct.unpack_from("<qQ", data, dynamic[2] + at) for at in range(0, dynamic[5] - 15, 16)]
    address = next(value for tag, value in pairs if tag == _DT_STRTAB)
    start = next(at + address - base for base, at, length in loads if base <= address < base + length)

    def text(value: int) -> str:
        return data[start + value : data.index(b"\0", start + value)].decode()

    rpath = ":".join(text(value) for tag, value in pairs if tag in (_DT_RPATH, _DT_RUNPATH))
    places = tuple(
        one.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(path.parent))
        for one in rpath.split(":")
        if one
    )
    return Needs(loader, tuple(text(value) for tag, value in pairs if tag == _DT_NEEDED), places, elf=True)
