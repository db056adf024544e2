"""Tests that packed kernels are unpacked correctly from every known format, and that unknown ones are
refused.
"""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from orchestrator.images.errors import ImageError
from orchestrator.images.kernel import vmlinux

ELF = b"\x7fELF" + bytes(range(256)) * 64


def bzimage(path: Path, payload: bytes) -> Path:
    """Writes the relevant parts of the boot protocol: two setup sectors, then the payload at an offset."""
    head = bytearray(3 * 512)
    head[0x1F1] = 2
    struct.pack_into("<II", head, 0x248, 100, len(payload))
    path.write_bytes(bytes(head) + bytes(100) + payload + b"tail")
    return path


def packed(how: str, length: bytes) -> bytes:
    if how == "xz":
        return lzma.compress(ELF)
    if how == "gzip":
        return gzip.compress(ELF) + length
    if shutil.which("lz4") is None:
        pytest.skip("lz4 is not installed; images/packages.sh vm")
    return subprocess.run(["lz4", "-l", "-q"], input=ELF, capture_output=True, check=True).stdout + length


@pytest.mark.parametrize("how", ["xz", "gzip", "lz4"])
def test_the_kernel_comes_out(tmp_path: Path, how: str) -> None:
    source = bzimage(tmp_path / "vmlinuz", packed(how, struct.pack("<I", len(ELF))))
    vmlinux(source, tmp_path / "kernel")
    assert (tmp_path / "kernel").read_bytes() == ELF


def test_an_unknown_packing_and_a_wrong_content_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="packed in an unknown way"):
        vmlinux(bzimage(tmp_path / "a", b"\0\1\2\3"), tmp_path / "kernel")
    with pytest.raises(ImageError, match="no ELF file"):
        vmlinux(bzimage(tmp_path / "b", lzma.compress(b"no kernel")), tmp_path / "kernel")
