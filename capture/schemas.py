"""Converts the contract's tables to polars schemas."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from contract.tables import TABLES, Kind

KINDS: Mapping[Kind, pl.DataType] = {
    "u8": pl.UInt8(), "u32": pl.UInt32(), "i64": pl.Int64(), "f64": pl.Float64(), "str": pl.String(),
    "bool": pl.Boolean(), "list[str]": pl.List(pl.String),
}  # fmt: skip


def schema(name: str) -> dict[str, pl.DataType]:
    """Returns the columns, with their types, that every table of that name has."""
    return {one.name: KINDS[one.kind] for one in TABLES[name].columns if not one.absent}
