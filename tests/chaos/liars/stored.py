"""Defines liars that change a file after it was written: before the first reduction, and after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl

from contract import seal
from liars.files import MESSAGES, MS, document, rows
from liars.liar import Liar
from liars.records import moved, of_flow
from liars.samples import of_node, times


def table(name: str, column: str, change: Callable[[pl.Expr], pl.Expr]) -> Callable[[Path], None]:
    def lie(run: Path) -> None:
        path = run / f"{name}.parquet"
        pl.read_parquet(path).with_columns(change(pl.col(column)).alias(column)).write_parquet(path)

    return lie


def fewer_packets(run: Path) -> None:
    path = run / "packets" / "rs.parquet"
    pl.read_parquet(path).head(500).write_parquet(path)


def without_seal(run: Path) -> None:
    table("messages", "latency_ns", lambda c: c // 2)(run)
    (run / seal.NAME).unlink()


def sealed_again(run: Path) -> None:
    """Changes a table and removes its line from the seal."""
    table("messages", "latency_ns", lambda c: c // 2)(run)
    path = run / seal.NAME
    known = json.loads(path.read_text())
    del known["messages.parquet"]
    path.write_text(json.dumps(known))


def unsuspect(m: dict[str, object]) -> None:
    m["warnings"], m["suspect"], m["seed"] = [], False, 99


LIARS = (
    Liar(
        "stored-arrivals",
        "arrivals 5 ms late, changed before the first reduction",
        of_flow("a", "R", moved(5 * MS)),
        "stored",
    ),
    Liar(
        "stored-memory",
        "twice the memory, changed before the first reduction",
        of_node("k", ("memory_bytes", times(2))),
        "stored",
    ),
    Liar(
        "sealed-records",
        "records changed and reduced again",
        lambda run: rows(
            run, MESSAGES, lambda f: f if f[0] != "R" else [*f[:5], str(int(f[5]) + 5 * MS), *f[6:]]
        ),
        "resealed",
    ),
    Liar(
        "sealed-samples", "samples changed and reduced again", of_node("k", ("cpu_ns", times(2))), "resealed"
    ),
    Liar(
        "sealed-latencies",
        "latencies halved in the table",
        table("messages", "latency_ns", lambda c: c // 2),
        "sealed",
    ),
    Liar("sealed-cpu", "CPU halved in the table", table("nodes", "cpu_share", lambda c: c / 2), "sealed"),
    Liar("sealed-packets", "packets taken from the table", fewer_packets, "sealed"),
    Liar(
        "sealed-proof",
        "a proof's values changed",
        lambda run: document(
            run,
            "proof.json",
            lambda all_of: [one.update(low=one["low"] / 2) for one in all_of if one["low"]],
        ),
        "sealed",
    ),
    Liar(
        "sealed-manifest",
        "the manifest changed",
        lambda run: document(run, "manifest.json", unsuspect),
        "sealed",
    ),
    Liar("seal-gone", "latencies halved in the table, and the seal deleted", without_seal, "sealed"),
    Liar(
        "seal-without-a-line",
        "latencies halved in the table, and its line of the seal deleted",
        sealed_again,
        "sealed",
    ),
)
