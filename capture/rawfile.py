"""Reads the raw files of a run line by line, also those whose last line a crash has cut."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import polars as pl

# A byte that no record holds: the whole line is then one field.
UNIT_SEPARATOR = "\x1f"

# Forms of fields, as regular expressions.
INTEGER = r"-?[0-9]+"
DECIMAL = r"-?[0-9.]+(?:e-?[0-9]+)?"
# A field with a comma stands in quotation marks, and its own are doubled (RFC 4180).
NAME = r'[^,"]*|"(?:[^"]|"")*"'


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the reader of a result has to know: as the warnings in manifest.json."""

    code: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Raw:
    """Whole lines of a file (one column, `line`), and what was wrong with it."""

    lines: pl.DataFrame
    warnings: tuple[Warned, ...] = ()


CUT_REMEDY = "The run crashed or ran out of disk; what stands before the cut is complete."


def read(path: Path) -> Raw:
    """All whole lines of `path`; a last line without its newline is left out, with a warning."""
    if path.stat().st_size == 0:
        return Raw(pl.DataFrame(schema={"line": pl.String}))
    if _ends_whole(path):
        return Raw(_lines(path))
    whole, _, rest = path.read_bytes().rpartition(b"\n")
    text = f"{path.name}: its last line is cut ({len(rest)} bytes left out)."
    lines = _lines(io.BytesIO(whole + b"\n")) if whole else pl.DataFrame(schema={"line": pl.String})
    return Raw(lines, (Warned("reduce-cut", text, CUT_REMEDY),))


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as source:
        source.seek(-1, io.SEEK_END)
        return source.read(1) == b"\n"


def _lines(source: Path | io.BytesIO) -> pl.DataFrame:
    return pl.read_csv(
        source, has_header=False, separator=UNIT_SEPARATOR, quote_char=None, schema={"line": pl.String},
        encoding="utf8-lossy", truncate_ragged_lines=True,
    ).drop_nulls()  # fmt: skip


def fields(raw: Raw, name: str, pattern: dict[str, str]) -> Raw:
    """Columns from lines of comma-separated fields; `pattern` gives each column's form, in order.

    A column whose form is INTEGER or DECIMAL becomes a number. Lines that do not fit are left out, with a
    warning.
    """
    whole = "^" + ",".join(f"(?<{column}>{form})" for column, form in pattern.items()) + "$"
    found = raw.lines.select(found=pl.col("line").str.extract_groups(whole)).unnest("found")
    kinds = {
        c: pl.Int64() if f == INTEGER else pl.Float64() for c, f in pattern.items() if f in (INTEGER, DECIMAL)
    }
    fit = found.select(
        pl.col(c).cast(kinds[c], strict=False) if c in kinds else _plain(c) for c in pattern
    ).drop_nulls()
    odd = raw.lines.height - fit.height
    if odd == 0:
        return Raw(fit, raw.warnings)
    text = f"{name}: {odd} lines are not as docs/contracts.md has them and were left out."
    return Raw(
        fit,
        (
            *raw.warnings,
            Warned("reduce-odd-lines", text, "Look at the file: another version may have written it."),
        ),
    )


def _plain(column: str) -> pl.Expr:
    """A field without its quotation marks."""
    field = pl.col(column)
    quoted = field.str.len_chars().ge(2) & field.str.starts_with('"') & field.str.ends_with('"')
    inner = field.str.slice(1, field.str.len_chars() - 2).str.replace_all('""', '"', literal=True)
    return pl.when(quoted).then(inner).otherwise(field).alias(column)


def table(path: Path, pattern: dict[str, str]) -> Raw:
    """A CSV file with the columns of `pattern`, with or without a header line."""
    raw = read(path)
    body = raw.lines.filter(pl.col("line") != ",".join(pattern))
    return fields(Raw(body, raw.warnings), path.name, pattern)
