"""Collects, writes and reads the data set of the atlas: a Parquet file with one row for each run, and a
description of itself in its metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reports.atlas.axes import AXES, DEADLINES_S
from reports.atlas.measure import row_of
from reports.errors import RunDirectoryError
from reports.study import cell_lines

SHIPPED = Path(__file__).parent / "data" / "atlas.parquet"
FORMAT = 1
KEY = ("model", "loss", "rate_bps", "delay_s", "receivers", "size_bytes", "duplex", "seed")
_TEXTS = ("model", "duplex", "code", "agent", "kernel", "version", "time", "parameters")
_COUNTS = (
    "point", "seed", "receivers", "size_bytes", "updates", "owed", "delivered", "confirmed", "duplicated",
    "wire_bytes", "setup_bytes", "wire_packets", "retransmissions", "captures_dropped",
)  # fmt: skip
_TRUTHS = ("hit_patience", "suspect")
_ABOUT = "vnet-atlas"  # key of the file's metadata


class AtlasError(Exception):
    """Raised if a data set cannot be read or made; the text has the place, the value, the rule and the
    remedy.
    """


@dataclass(frozen=True)
class Atlas:
    """A data set that was read: its rows, and `digest`, the SHA-256 of the file's bytes."""

    path: Path
    rows: pl.DataFrame
    digest: str

    @property
    def models(self) -> list[str]:
        """The names of the interaction models, sorted."""
        return sorted(self.rows["model"].unique().to_list())

    def of(self, model: str) -> pl.DataFrame:
        """Returns the rows of one model."""
        return self.rows.filter(pl.col("model") == model)


def collect(campaign_dir: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns one row for each complete run of a campaign, and a sentence for each run that is incomplete or
    unreadable and for each damaged line of cells.jsonl.

    AtlasError if cells.jsonl cannot be read, or if a complete cell has no design point.
    """
    try:
        lines, skipped = cell_lines(campaign_dir / "cells.jsonl")
    except RunDirectoryError as error:
        raise AtlasError(str(error)) from error
    rows = []
    for line in lines:
        if line.get("state") != "complete":
            skipped.append(f"{line.get('cell')}: {line.get('state')}: {line.get('error')}")
            continue
        if "point" not in line:
            raise AtlasError(
                f"{campaign_dir}: cell {line.get('cell')} belongs to no point; the atlas is made of "
                "campaigns with `design` or `points`, as topologies/atlas/atlas.yaml"
            )
        try:
            rows.append(
                row_of(campaign_dir / line["run_dir"], line["levels"], line["point"], line.get("wall_s"))
            )
        except RunDirectoryError as error:
            skipped.append(f"{line['cell']}: {error}")
    return rows, skipped


def merged(old: pl.DataFrame | None, rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Returns the old and new rows together, sorted by point, model and seed. Of rows with the same model,
    coordinates and seed, only the last one stays, so a new row replaces an old one.
    """
    new = pl.DataFrame(list(rows), schema=_schema())
    both = new if old is None else pl.concat([old, new])
    return both.unique(KEY, keep="last").sort("point", "model", "seed")


def _schema() -> dict[str, Any]:
    lists = pl.Array(pl.Float32, len(DEADLINES_S))
    types: dict[str, Any] = dict.fromkeys(_TEXTS, pl.String)
    types |= dict.fromkeys(_COUNTS, pl.Int64) | dict.fromkeys(_TRUTHS, pl.Boolean)
    types |= {"delivered_within": lists, "confirmed_within": lists, "warnings": pl.List(pl.String)}
    order = [
        "model", "point", "seed", *(axis.name for axis in AXES), "duplex", "updates", "owed", "delivered",
        "confirmed", "duplicated", "hit_patience", "delivered_within", "confirmed_within",
        *(f"{of}_p{p}_s" for of in ("latency", "round_trip") for p in (10, 50, 90, 99, 100)),
        "wire_bytes", "setup_bytes", "wire_packets", "retransmissions", "bytes_per_update",
        "captures_dropped", "lab_s", "patience_s", "wall_s", "suspect", "warnings", "code",
        "agent", "kernel", "version", "time", "parameters",
    ]  # fmt: skip
    return {name: types.get(name, pl.Float64) for name in order}


def write(frame: pl.DataFrame, path: Path, command: str) -> None:
    """Writes the rows to `path`, replaces an earlier file in one step, and makes the directory.

    The file's metadata records the format, the deadlines, the designed ranges, and `command`, which makes the
    data set again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "command": command, "deadlines_s": DEADLINES_S, "ranges": ranges()}
    fresh = path.with_name(path.name + ".new")
    frame.write_parquet(fresh, compression="zstd", metadata={_ABOUT: json.dumps(about)})
    fresh.replace(path)


def ranges() -> dict[str, Any]:
    """Returns for each axis by name: [low, high, "log" or "linear"] of the designed range."""
    return {axis.name: [axis.low, axis.high, "log" if axis.log else "linear"] for axis in AXES}


def read(path: Path = SHIPPED) -> Atlas:
    """Returns the data set in `path`; AtlasError if it is missing or unreadable, or has another format or
    other columns.
    """
    try:
        content = path.read_bytes()
        about = json.loads(pl.read_parquet_metadata(path).get(_ABOUT, "{}"))
        rows = pl.read_parquet(path)
    except FileNotFoundError:
        raise AtlasError(f"{path}: is not there; `vnet atlas run` makes a data set") from None
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise AtlasError(
            f"{path}: cannot be read as a data set of the atlas ({error}); `vnet atlas collect` makes one"
        ) from error
    if about.get("format") != FORMAT or rows.schema != pl.Schema(_schema()):
        raise AtlasError(
            f"{path}: is no data set of the atlas of format {FORMAT}; make it again with `vnet atlas collect`"
        )
    return Atlas(path, rows, hashlib.sha256(content).hexdigest())


def about(path: Path) -> dict[str, Any]:
    """Returns the description (format, command, deadlines_s, ranges) in the file's metadata; KeyError if the
    file has none.
    """
    found: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)[_ABOUT])
    return found
