"""Tests that archives and seeds are reproducible byte by byte, and that independent code can read them."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from orchestrator.images import cpio, initramfs, iso


def unpacked(archive: bytes) -> dict[str, tuple[int, int, bytes]]:
    """Returns (mode, mtime, data) by name of a newc archive."""
    found: dict[str, tuple[int, int, bytes]] = {}
    at = 0
    while True:
        fields = [int(archive[at + 6 + i * 8 : at + 14 + i * 8], 16) for i in range(13)]
        assert archive[at : at + 6] == b"070701"
        mode, mtime, size, length = fields[1], fields[5], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length - 1].decode()
        start = at + (110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, mtime, archive[start : start + size])
        at = start + (size + 3) // 4 * 4


def test_an_archive_is_sorted_complete_and_the_same_whatever_the_order() -> None:
    entries = [
        cpio.file("/usr/bin/b", b"12345", 0o755),
        cpio.link("init", "usr/bin/b"),
        cpio.directory("/dev"),
    ]
    archive = cpio.archive(entries)
    assert archive == cpio.archive(entries[::-1])
    found = unpacked(archive)
    assert list(found) == ["dev", "init", "usr", "usr/bin", "usr/bin/b"]
    assert found["usr/bin/b"] == (stat.S_IFREG | 0o755, 0, b"12345")
    assert found["init"][2] == b"usr/bin/b" and stat.S_ISLNK(found["init"][0])
    assert stat.S_ISDIR(found["usr"][0])
    assert len(archive) % 4 == 0


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="mksquashfs: images/packages.sh vm")
def test_a_packed_file_system_does_not_depend_on_when_and_in_which_order_it_was_filled(
    tmp_path: Path,
) -> None:
    packed = []
    for turn, names in enumerate((["a", "b", "c"], ["c", "b", "a"])):
        root = tmp_path / f"tree{turn}"
        root.mkdir()
        for name in names:
            (root / name).write_text(name * 5000)
            os.utime(root / name, (turn * 1000, turn * 1000))
        initramfs.pack(root, tmp_path / f"{turn}.squashfs")
        packed.append((tmp_path / f"{turn}.squashfs").read_bytes())
    assert packed[0] == packed[1]


def test_a_seed_is_an_iso_of_that_label_whose_files_are_where_the_directory_says(tmp_path: Path) -> None:
    files = {"user-data": b"u" * 3000, "meta-data": b"m", "network-config": b""}
    image = iso.image("cidata", files)
    assert image == iso.image("cidata", dict(reversed(files.items())))
    disk = tmp_path / "seed.img"
    disk.write_bytes(image)
    if shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin"):
        asked = subprocess.run(
            ["/usr/sbin/blkid", "-p", "-o", "export", disk], capture_output=True, text=True, check=True
        )
        assert {"LABEL=cidata", "TYPE=iso9660"} <= set(asked.stdout.split())
    assert read_iso(image) == files


def read_iso(image: bytes) -> dict[str, bytes]:
    """Returns the files of an ISO image's root directory, read by ECMA-119's offsets."""
    descriptor = image[16 * 2048 :]
    (sector,) = struct.unpack_from("<I", descriptor, 156 + 2)
    (length,) = struct.unpack_from("<I", descriptor, 156 + 10)
    at, found = sector * 2048, {}
    while at < sector * 2048 + length and image[at]:
        start, size = (struct.unpack_from("<I", image, at + offset)[0] for offset in (2, 10))
        name = image[at + 33 : at + 33 + image[at + 32]]
        if len(name) > 1:
            found[name.decode()] = image[start * 2048 : start * 2048 + size]
        at += image[at]
    return found


def test_too_many_files_for_a_seed_are_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        iso.image("cidata", {f"file-{i}": b"" for i in range(100)})
