"""Caches large files with a limit on memory: reading a file again costs less than keeping all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from contract import regular, retired, rundir
from contract.plan import Plan
from contract.proof import Proven

T = TypeVar("T")
JSON_TIMES = 4  # memory of parsed JSON, as a multiple of the file's bytes
ROOM_BYTES = 64_000_000  # memory for the files of a 15-minute run with 300 nodes


class Shelf:
    """Caches the contents of files up to `room_bytes` in all, or one larger file; drops the least recently
    used first. A cached file is not read again, even if it changes.
    """

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room_bytes = room_bytes
        self._held: OrderedDict[Path, tuple[Any, int]] = OrderedDict()

    @property
    def held_bytes(self) -> int:
        return sum(size for _, size in self._held.values())

    def get(self, path: Path, read: Callable[[Path], T], size: Callable[[T], int]) -> T:
        """Returns the result of `read` for the file, from the cache if it is there; `size` returns the number
        of bytes that a result takes in memory.
        """
        if path in self._held:
            self._held.move_to_end(path)
            kept: T = self._held[path][0]
            return kept
        found = read(path)
        self._held[path] = found, size(found)
        while len(self._held) > 1 and self.held_bytes > self._room_bytes:
            self._held.popitem(last=False)
        return found

    def json(self, path: Path) -> Any:
        """Returns the parsed contents of a JSON file; OSError or ValueError if it cannot be read."""
        size = JSON_TIMES * path.stat().st_size
        return self.get(path, lambda file: regular.read_json(file), lambda _: size)

    def plan(self, run_dir: Path) -> Plan:
        """Returns the plan of a run; FileNotFoundError without plan.json, FormatError or UnreadableError if
        it cannot be read.
        """
        size = JSON_TIMES * (run_dir / rundir.PLAN).stat().st_size
        return self.get(run_dir / rundir.PLAN, lambda file: rundir.read_plan(file.parent), lambda _: size)

    def proof(self, run_dir: Path) -> list[Proven]:
        """Returns the link proof of a run; OSError or ValueError if proof.json cannot be read."""
        size = JSON_TIMES * (run_dir / rundir.PROOF).stat().st_size
        return self.get(run_dir / rundir.PROOF, lambda file: rundir.read_proof(file.parent), lambda _: size)

    def table(self, path: Path) -> pl.DataFrame:
        """Returns the contents of a Parquet file, with columns of earlier versions renamed."""
        return self.get(path, _table, lambda frame: int(frame.estimated_size()))


def _table(path: Path) -> pl.DataFrame:
    found = pl.read_parquet(path)
    return found.rename(retired.columns(path.stem, found.columns))


class Tables(Mapping[str, pl.DataFrame]):
    """The tables of a run by name; each access reads the table through the shelf. KeyError for a table
    without a file.
    """

    def __init__(self, files: Mapping[str, Path], shelf: Shelf) -> None:
        self._files = files
        self._shelf = shelf

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self._shelf.table(self._files[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
