"""Changes files of a run or campaign directory so that most of their structure stays; a seed chooses each
change.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 62, 1 << 70, 1e308, -1e-308, float("nan"), float("inf"), "", "x",
    "../../etc/passwd", "<script>alert(1)</script>", "=1+1", "\x1b]0;owned\x07", "\ud800", [], {}, [[]],
    {"": None}, [None],
)  # fmt: skip
FIELDS = ("", "0", "-1", "7", str(1 << 62), str(1 << 70), "1e308", "x", '"', '"x,y"')
Change = Callable[[Path, random.Random], str]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of every value below `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def document(file: Path, rng: random.Random) -> str:
    """Changes one value of a JSON document: removes, renames or doubles it, or replaces it by another type or
    size. Returns the change as text.
    """
    whole = json.loads(file.read_text())
    *above, key = rng.choice(list(places(whole)))
    holder = whole
    for step in above:
        holder = holder[step]
    how = rng.choice(("set", "set", "delete", "rename", "double"))
    said = f"{how} {'.'.join(map(str, (*above, key)))}"
    if how == "set":
        holder[key] = rng.choice(VALUES)
        said += f" = {holder[key]!r}"
    elif how == "delete":
        del holder[key]
    elif how == "rename" and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[key] = [holder[key]]
    file.write_text(json.dumps(whole))
    return said


def line(file: Path, rng: random.Random) -> str:
    """Changes one line of a file of JSON lines as a document, or doubles, cuts or removes it. Returns the
    change as text.
    """
    lines = file.read_text().splitlines()
    if not lines:
        return octets(file, rng)
    at, how = rng.randrange(len(lines)), rng.choice(("change", "change", "double", "cut", "delete"))
    if how == "change":
        part = file.with_name("line.json")
        part.write_text(lines[at])
        how = document(part, rng)
        lines[at] = part.read_text()
        part.unlink()
    elif how == "double":
        lines.append(lines[at])
    elif how == "cut":
        lines[at] = lines[at][: len(lines[at]) // 2]
    else:
        del lines[at]
    file.write_text("".join(f"{one}\n" for one in lines))
    return f"line {at + 1}: {how}"


def table(file: Path, rng: random.Random) -> str:
    """Changes a column of a Parquet table (removed, renamed, other type or values) or its rows (fewer, none,
    doubled, reversed). Returns the change as text.
    """
    frame = pl.read_parquet(file)
    column = rng.choice(frame.columns)
    how = rng.choice(
        ("drop", "text", "rename", "nulls", "negative", "huge", "fewer", "none", "double", "turned")
    )
    values = pl.col(column)
    if not frame.schema[column].is_numeric() and how in ("negative", "huge"):
        how = "nulls"
    changed = {
        "drop": lambda: frame.drop(column),
        "text": lambda: frame.with_columns(pl.lit("x").alias(column)),
        "rename": lambda: frame.rename({column: f"{column}x"}),
        "nulls": lambda: frame.with_columns(pl.lit(None, frame.schema[column]).alias(column)),
        "negative": lambda: frame.with_columns(-values.cast(pl.Float64)),
        "huge": lambda: frame.with_columns(values.cast(pl.Float64) * 1e300),
        "fewer": lambda: frame.head(frame.height // 2),
        "none": frame.clear,
        "double": lambda: pl.concat([frame, frame]),
        "turned": frame.reverse,
    }[how]()
    changed.write_parquet(file)
    return f"{how} {column}"


def cell(file: Path, rng: random.Random) -> str:
    """Changes one field of a CSV file to another number or text, or removes or doubles a line. Returns the
    change as text.
    """
    lines = file.read_text(errors="replace").splitlines()
    if not lines:
        return octets(file, rng)
    at, how = rng.randrange(len(lines)), rng.choice(("change", "change", "change", "double", "delete"))
    if how == "double":
        lines.insert(at, lines[at])
    elif how == "delete":
        del lines[at]
    else:
        fields = lines[at].split(",")
        fields[rng.randrange(len(fields))] = rng.choice(FIELDS)
        lines[at] = ",".join(fields)
    file.write_text("".join(f"{one}\n" for one in lines))
    return f"line {at + 1}: {how}"


def octets(file: Path, rng: random.Random) -> str:
    """Cuts or empties the file, changes a byte, inserts bytes that are no text, or puts a directory in its
    place. Returns the change as text.
    """
    content = file.read_bytes()
    at = rng.randrange(max(1, len(content)))
    how = rng.choice(("cut", "empty", "flip", "junk", "directory"))
    if how == "directory":
        file.unlink()
        file.mkdir()
        return how
    before, after = content[:at], content[at + 1 :]
    changed = {
        "cut": before,
        "empty": b"",
        "flip": before + bytes([(content[at] if content else 0) ^ (1 << rng.randrange(8))]) + after,
        "junk": before + b"\xff\xfe" + after,
    }
    file.write_bytes(changed[how])
    return f"{how} at {at}"


OF: dict[str, Change] = {".json": document, ".jsonl": line, ".parquet": table, ".csv": cell}


def mutate(directory: Path, seed: int) -> str:
    """Changes one file below `directory`, and returns which one and how."""
    rng = random.Random(seed)
    files = [p for p in sorted(directory.rglob("*")) if p.is_file() and "report" not in p.parts]
    kinds: dict[str, list[Path]] = {}
    for path in files:
        kinds.setdefault(path.suffix, []).append(path)
    file = rng.choice(kinds[rng.choice(sorted(kinds))])
    change = OF.get(file.suffix, octets) if rng.random() < 0.75 else octets
    name = file.relative_to(directory)
    return f"{name}: {change(file, rng)}"
