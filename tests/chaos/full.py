"""Runs commands on a disk that is full from the n-th writing call on, or for that call only, in any of their
processes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALLS, LENGTH, HEAD = 4096, 512, 32  # sizes in `struct shared` of full.c


@cache
def library() -> Path:
    """Compiles full.c and returns the library, which stays in the build directory."""
    source, made = Path(__file__).with_name("full.c"), ROOT / "target" / "full.so"
    made.parent.mkdir(exist_ok=True)
    wanted = ("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror")
    subprocess.run([*wanted, "-o", made, source, "-ldl"], check=True)
    return made


@dataclass(frozen=True)
class Outcome:
    """The end of one command. status: None if it did not end in time. calls: the paths of the calls that used
    disk space, in order.
    """

    status: int | None
    said: str
    calls: tuple[Path, ...]


class FullDisk:
    """Runs commands of vNET; the disk that gets full is the directory `top`."""

    def __init__(self, folder: Path) -> None:
        self.top = folder / "top"
        self._shared, said = folder / "shared", folder / "said"
        self._shared.write_bytes(b"")
        os.truncate(self._shared, HEAD + CALLS * LENGTH)
        own = {
            "VNET_FULL_TOP": str(self.top),
            "VNET_FULL_SHARED": str(self._shared),
            "VNET_FULL_SAID": str(said),
        }
        more = {"LD_PRELOAD": str(library()), "VNET_STATE_DIR": str(self.top / "s"), "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("full_inside.py"))],
            env={**os.environ, **own, **more, "COLUMNS": "200", "POLARS_MAX_THREADS": "1"},
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def vnet(self, *argv: str, at: int = 0, stays: bool = False) -> Outcome:
        """Runs one command. at: the number of the call that fails, from 1; 0 lets all succeed."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"argv": argv, "at": at, "stays": stays}) + "\n")
        self._process.stdin.flush()
        status, said = json.loads(self._process.stdout.readline())
        held = self._shared.read_bytes()
        count = int.from_bytes(held[:8], sys.byteorder)
        assert count <= CALLS, f"{count} calls are more than full.c holds"
        paths = (held[HEAD + n * LENGTH : HEAD + (n + 1) * LENGTH] for n in range(count))
        return Outcome(status, said, tuple(Path(p.split(b"\0", 1)[0].decode()) for p in paths))

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=60)


@contextmanager
def full_disk(folder: Path) -> Iterator[FullDisk]:
    disk = FullDisk(folder)
    try:
        yield disk
    finally:
        disk.end()


def fresh(source: Path, target: Path) -> None:
    """Replaces the directory `target` by a copy of `source`."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
