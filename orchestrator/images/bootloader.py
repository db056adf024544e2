"""Makes a disk bootable on a PC: writes partition table and GRUB, without mounts or loop devices."""

from __future__ import annotations

import struct
from pathlib import Path

from orchestrator.images.errors import ImageError
from orchestrator.images.run import run

GRUB = Path("/usr/lib/grub/i386-pc")
FIRST_MIB = 1  # the partition begins at this MiB; GRUB's core lies before it, from sector 1 on
SECTOR = 512
_CODE = 440  # bytes of the first sector that are boot code; the table begins at 446
_LINUX, _ACTIVE = 0x83, 0x80
# cylinder, head and sector numbers end at 8 GB; this value refers to the sector numbers
_BEYOND_CYLINDERS = b"\xfe\xff\xff"
MODULES = ("biosdisk", "part_msdos", "ext2", "normal", "linux", "echo", "serial", "terminal", "test")
MENU = """\
# Written by vNET. /vmlinuz and /initrd.img are links that Debian's kernel packages keep.
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
set timeout=0
menuentry "Debian" {{
  linux /vmlinuz {append}
  initrd /initrd.img
}}
"""


def write_menu(root: Path, append: str) -> None:
    """Writes GRUB's menu into the root file system: one entry, with the kernel command line of the image."""
    place = root / "boot" / "grub" / "grub.cfg"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(MENU.format(append=append))


def make_bootable(raw: Path, size_mib: int, scratch: Path) -> None:
    """Writes partition table and GRUB into a raw disk, before its only partition, which has `size_mib` MiB.

    Raises ImageError if GRUB's core cannot be made or does not fit before the partition.
    """
    core = scratch / "core.img"
    options: list[str | Path] = ["-O", "i386-pc", "-d", GRUB, "-p", "(,msdos1)/boot/grub", "-o", core]
    run(["grub-mkimage", *options, *MODULES], why="GRUB's core")
    head = first_sector((GRUB / "boot.img").read_bytes(), size_mib) + core.read_bytes()
    if len(head) > FIRST_MIB << 20:
        raise ImageError(f"GRUB's core: {len(head)} bytes do not fit before the partition; use fewer MODULES")
    with raw.open("r+b") as disk:
        disk.write(head)


def first_sector(code: bytes, size_mib: int) -> bytes:
    """Returns sector 0: boot code that loads from sector 1 on, and a table with one active
    Linux partition.
    """
    start, length = (mib * (1 << 20) // SECTOR for mib in (FIRST_MIB, size_mib))
    entry = struct.pack("<B3sB3sII", _ACTIVE, _BEYOND_CYLINDERS, _LINUX, _BEYOND_CYLINDERS, start, length)
    return code[:_CODE] + bytes(6) + entry + bytes(3 * len(entry)) + b"\x55\xaa"
