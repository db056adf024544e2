"""Finds the first difference between two files of a run: the packet, table row, text line or byte."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

GLOBAL_HEADER = 24
RECORD_HEADER = 16
NANOSECOND_MAGIC = 0xA1B23C4D
SHOWN = (
    "src",
    "dst",
    "protocol",
    "src_port",
    "dst_port",
    "tcp_flags",
    "seq",
    "ack",
    "payload_bytes",
    "app",
    "app_types",
)


@dataclass(frozen=True)
class Difference:
    """The first difference of two files. `where`: its place, such as "packet 7"; `before`: the recorded run's
    side; `again`: the new run's side.
    """

    file: str
    where: str
    before: str
    again: str


def first_difference(name: str, before: Path, again: Path) -> Difference | None:
    """Returns the first difference of two files; it may be that one file is absent. None if they are equal
    byte for byte. Compares packets of .pcap, rows of .parquet, and bytes of .png files, and lines of all
    others; if these are equal, compares bytes.
    """
    if not before.exists() or not again.exists():
        sides = ["there" if path.exists() else "absent" for path in (before, again)]
        return Difference(name, "the whole file", *sides)
    if before.read_bytes() == again.read_bytes():
        return None
    kinds = {".pcap": _packet, ".parquet": _row, ".png": _byte}
    return kinds.get(before.suffix, _line)(name, before, again) or _byte(name, before, again)


def _packet(name: str, before: Path, again: Path) -> Difference | None:
    tables = [_dissected(path) for path in (before, again)]
    pairs = itertools.zip_longest(_records(before), _records(again))
    for number, (one, other) in enumerate(pairs):
        if one != other:
            sides = [_shown(r, t, number) for r, t in zip((one, other), tables, strict=True)]
            return Difference(name, f"packet {number + 1}", *sides)
    return None


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields time (ns) and bytes of every packet of a pcap file."""
    data = path.read_bytes()
    order = "little" if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xd4\xc3\xb2\xa1") else "big"
    unit = 1 if int.from_bytes(data[:4], order) == NANOSECOND_MAGIC else 1000  # type: ignore[arg-type]
    at = GLOBAL_HEADER
    while at + RECORD_HEADER <= len(data):
        words = [int.from_bytes(data[at + i : at + i + 4], order) for i in (0, 4, 8)]  # type: ignore[arg-type]
        at += RECORD_HEADER
        yield words[0] * 1_000_000_000 + words[1] * unit, data[at : at + words[2]]
        at += words[2]


def _dissected(pcap: Path) -> pl.DataFrame | None:
    table = pcap.parent.parent / "packets" / f"{pcap.stem}.parquet"
    return pl.read_parquet(table) if table.exists() else None


def _shown(record: tuple[int, bytes] | None, table: pl.DataFrame | None, number: int) -> str:
    if record is None:
        return "no such packet: the capture has ended"
    time_ns, data = record
    said = f"{clock(time_ns)}  {len(data)} bytes"
    if (
        table is not None
        and number < table.height
        and (row := table.row(number, named=True))["t_ns"] == time_ns
    ):
        said += "  " + _words(row, SHOWN)
    return f"{said}\n    {data[:96].hex(' ', 4)}{' ...' if len(data) > 96 else ''}"


def _row(name: str, before: Path, again: Path) -> Difference | None:
    tables = [pl.read_parquet(path) for path in (before, again)]
    if tables[0].columns != tables[1].columns:
        return Difference(name, "the columns", *(", ".join(t.columns) for t in tables))
    for number, (one, other) in enumerate(itertools.zip_longest(*(t.iter_rows(named=True) for t in tables))):
        if one != other:
            differing = [c for c in tables[0].columns if (one or {}).get(c) != (other or {}).get(c)]
            where = f"row {number + 1}, {', '.join(differing)}"
            return Difference(name, where, *(_words(row, tables[0].columns) for row in (one, other)))
    return None


def _words(row: Mapping[str, Any] | None, columns: tuple[str, ...] | list[str]) -> str:
    if row is None:
        return "no such row: the table has ended"
    return ", ".join(f"{name} {row[name]}" for name in columns if row.get(name) is not None)


def _line(name: str, before: Path, again: Path) -> Difference | None:
    sides = [path.read_text(errors="replace").splitlines() for path in (before, again)]
    for number, (one, other) in enumerate(itertools.zip_longest(*sides, fillvalue="(the file has ended)")):
        if one != other:
            return Difference(name, f"line {number + 1}", one[:400], other[:400])
    return None


def _byte(name: str, before: Path, again: Path) -> Difference:
    sides = [path.read_bytes() for path in (before, again)]
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*sides, strict=False)))
    return Difference(name, f"byte {same + 1}", *(side[same : same + 16].hex(" ") for side in sides))


def clock(time_ns: int) -> str:
    """Writes a lab time as time of day in UTC with nanoseconds."""
    whole = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return f"{whole:%H:%M:%S}.{time_ns % 1_000_000_000:09d}"
