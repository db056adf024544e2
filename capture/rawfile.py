"""Reads the raw files of a run as lines or as columns of fields; reports cut and malformed lines
as warnings.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from contract.manifest import Warned

# A byte that is in no record, used as separator, so that the whole line is one field.
UNIT_SEPARATOR = "\x1f"

# Forms of fields, as regular expressions.
INTEGER = r"-?[0-9]+"
OPTIONAL = r"-?[0-9]*"  # an integer, or empty if the number is not known
DECIMAL = r"-?[0-9.]+(?:e-?[0-9]+)?"
NUMBERS: dict[str, pl.DataType] = {INTEGER: pl.Int64(), OPTIONAL: pl.Int64(), DECIMAL: pl.Float64()}
# A field with a comma is in quotation marks, and quotation marks in it are doubled (RFC 4180).
NAME = r'[^,"]*|"(?:[^"]|"")*"'


@dataclass(frozen=True, slots=True)
class Raw:
    """The whole lines of a file, as one column `line` or as one column for each field, and warnings of lines
    that were left out.
    """

    lines: pl.DataFrame
    warnings: tuple[Warned, ...] = ()


CUT_REMEDY = "The run crashed or ran out of disk; what stands before the cut is complete."


def read(path: Path) -> Raw:
    """Returns all whole lines of `path` except empty ones. Leaves out a last line without newline, with a
    warning. Replaces bytes that are not UTF-8.
    """
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
    """Splits lines of comma-separated fields into columns; `pattern` has each column's regular expression,
    in order. A column with the form INTEGER, OPTIONAL or DECIMAL becomes a number (an empty field null).
    Leaves out lines that do not match, with a warning that names the file `name`.

    Lines with quotation marks come after all others.
    """
    quoted = pl.col("line").str.contains('"', literal=True)
    lines = raw.lines.lazy()
    fit = pl.concat([_fit(lines.filter(~quoted), pattern), _fit(lines.filter(quoted), pattern, quoted=True)])
    found = fit.collect()
    odd = raw.lines.height - found.height
    if odd == 0:
        return Raw(found, raw.warnings)
    text = f"{name}: {odd} lines are not as docs/contracts.md has them and were left out."
    return Raw(
        found,
        (
            *raw.warnings,
            Warned("reduce-odd-lines", text, "Look at the file: another version may have written it."),
        ),
    )


def _fit(lines: pl.LazyFrame, pattern: dict[str, str], *, quoted: bool = False) -> pl.LazyFrame:
    """Returns the lines whose fields all match, split into columns and converted. `quoted`: the lines have
    quotation marks, so commas within these do not split.
    """
    if quoted:
        whole = "^" + ",".join(f"(?<{column}>{form})" for column, form in pattern.items()) + "$"
        split = pl.col("line").str.extract_groups(whole)
    else:
        split = pl.col("line").str.splitn(",", len(pattern)).struct.rename_fields(list(pattern))
    texts = lines.select(split.alias("fields")).unnest("fields")
    right = pl.all_horizontal(_right(column, form) for column, form in pattern.items())
    return texts.filter(right).select(
        pl.col(column).cast(NUMBERS[form], strict=False) if form in NUMBERS else _plain(column)
        for column, form in pattern.items()
    )


def _right(column: str, form: str) -> pl.Expr:
    """Returns an expression that is true if a field matches its form; integers are tested by a cast to 64
    bits, which is faster.
    """
    field = pl.col(column)
    if form not in (INTEGER, OPTIONAL):
        return field.str.contains(f"^(?:{form})$").fill_null(False)
    number = field.cast(NUMBERS[form], strict=False).is_not_null()
    return number | (field == "").fill_null(False) if form == OPTIONAL else number


def _plain(column: str) -> pl.Expr:
    """Returns an expression for a field without its enclosing quotation marks; doubled quotation marks within
    become single ones. Other fields stay as they are.
    """
    field = pl.col(column)
    quoted = field.str.len_chars().ge(2) & field.str.starts_with('"') & field.str.ends_with('"')
    inner = field.str.slice(1, field.str.len_chars() - 2).str.replace_all('""', '"', literal=True)
    return pl.when(quoted).then(inner).otherwise(field).alias(column)


def table(path: Path, pattern: dict[str, str], retired: Mapping[str, str] | None = None) -> Raw:
    """Reads a CSV file with the columns of `pattern`, with or without a header line, as `fields` does.

    `retired` maps the column names in headers of earlier versions to the present ones.
    """
    raw = read(path)
    old = {new: name for name, new in (retired or {}).items()}
    headers = {",".join(pattern), ",".join(old.get(column, column) for column in pattern)}
    body = raw.lines.filter(~pl.col("line").is_in(list(headers)))
    return fields(Raw(body, raw.warnings), path.name, pattern)
