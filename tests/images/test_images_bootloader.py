"""Tests that a disk boots by itself: its table is where a PC looks for it, and GRUB finds the menu in the
file system.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from images_needs import needs

from orchestrator.images import bootloader

SIZE_MIB = 32


def test_the_first_sector_has_code_and_one_active_linux_partition() -> None:
    sector = bootloader.first_sector(bytes(range(256)) * 2, SIZE_MIB)
    assert len(sector) == 512 and sector[510:] == b"\x55\xaa"
    assert sector[:440] == (bytes(range(256)) * 2)[:440]
    active, kind = sector[446], sector[450]
    assert (active, kind) == (0x80, 0x83)
    assert struct.unpack_from("<II", sector, 454) == (2048, SIZE_MIB * 2048)
    assert not any(sector[462:510]), "no other partition"


def test_grub_finds_its_menu_in_a_file_system_that_nobody_has_mounted(tmp_path: Path) -> None:
    needs("grub-mkimage", "mke2fs", "qemu-system-x86_64")
    root, raw = tmp_path / "root", tmp_path / "disk.raw"
    bootloader.write_menu(root, "quiet")
    place = f"-q -F -t ext4 -E offset={bootloader.FIRST_MIB << 20}".split()
    subprocess.run(["mke2fs", *place, "-d", root, raw, f"{SIZE_MIB}M"], check=True, capture_output=True)
    bootloader.make_bootable(raw, SIZE_MIB, tmp_path)
    machine = "qemu-system-x86_64 -nodefaults -no-user-config -display none -machine q35 -accel tcg -m 64M"
    disk = ["-drive", f"file={raw},if=virtio,format=raw", "-serial", "stdio"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*machine.split(), *disk], stdin=pipe, stdout=pipe) as guest:
        assert guest.stdout
        said = b""
        while b"Press any key" not in said and (more := guest.stdout.read1()):
            said += more
        guest.kill()
    assert b"Booting `Debian'" in said, "the menu of the root file system"
    assert b"`/vmlinuz' not found" in said, "which holds no kernel here"
