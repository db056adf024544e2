"""Makes a run directory of an attacker, in which every name of the run and all user texts contain markup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

HOSTILE = "<img src=x onerror=alert(1)>\"'&"
NAMES = (
    "uplink",
    "lan",
    "core",
    "broker",
    "mosquitto",
    "client",
    "client.meter",
    "client1",
    "subscriber",
    "meter",
)


def hostile(value: Any) -> Any:
    """Returns the same structure with markup added to every name of the run and all user texts."""
    if isinstance(value, dict):
        return {(hostile(k) if k in NAMES else k): hostile(v) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return f"{value}{HOSTILE}" if value in NAMES else value


def make_hostile(run: Path) -> None:
    """Adds markup to the names in a run's plan, manifest, proof and tables."""
    for name in ("plan.json", "manifest.json", "proof.json"):
        data = hostile(json.loads((run / name).read_text()))
        if name == "manifest.json":
            data["warnings"] = [{"code": "x", "text": HOSTILE, "remedy": HOSTILE}]
            data["error"] = HOSTILE
        (run / name).write_text(json.dumps(data))
    for table in run.rglob("*.parquet"):
        frame = pl.read_parquet(table)
        named = [column for column, kind in frame.schema.items() if kind in (pl.String, pl.Categorical)]
        changed = [
            pl.when(pl.col(c).cast(pl.String).is_in(NAMES))
            .then(pl.col(c).cast(pl.String) + HOSTILE)
            .otherwise(pl.col(c).cast(pl.String))
            .cast(frame.schema[c])
            .alias(c)
            for c in named
        ]
        frame.with_columns(changed).write_parquet(table)
