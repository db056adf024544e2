"""Unpacks compressed captures, for as long as they are read."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capture.errors import CaptureError

SUFFIX = ".zst"
PROGRAM = "zstd"


def packed(pcap: Path) -> Path:
    """Returns the path of the compressed form of a capture file."""
    return pcap.with_name(pcap.name + SUFFIX)


@contextmanager
def plain(pcap: Path) -> Iterator[tuple[Path, str]]:
    """Yields the path of the capture file and zstd's error text ("" if there is none).

    If only the compressed form exists, unpacks it beside that form, and removes the unpacked file afterwards.
    If the compressed form is damaged or cut, the file has the packets before the damage. Raises CaptureError
    if zstd cannot run.
    """
    if pcap.exists() or not packed(pcap).exists():
        yield pcap, ""
        return
    if shutil.which(PROGRAM) is None:
        raise CaptureError(f"{packed(pcap)}: zstd is not installed; `apt-get install zstd`")
    part = pcap.with_name(f".{pcap.name}.part")
    try:
        with part.open("wb") as file, packed(pcap).open("rb") as source:
            done = subprocess.run(
                [PROGRAM, "-q", "-d", "-c"], stdin=source, stdout=file, stderr=subprocess.PIPE, text=True,
                errors="replace", check=False,
            )  # fmt: skip
        if done.returncode and "No space left" in done.stderr:
            raise CaptureError(f"{packed(pcap)}: no room to unpack it in {pcap.parent}; free some")
        part.rename(pcap)
        yield pcap, (done.stderr.strip() or f"status {done.returncode}") if done.returncode else ""
    finally:
        part.unlink(missing_ok=True)
        pcap.unlink(missing_ok=True)
