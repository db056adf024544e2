"""Finds impossible values in sampled counters: values below zero, jumps faster than any machine's, or times
more than a day outside the scenario. Such values show that a raw file was damaged or changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from contract.manifest import TRUST, Manifest, Warned

COUNTERS = {  # counters of each table; counters of bytes are also compared with MOST_BPS
    "nodes": ("cpu_ns", "rx_bytes", "rx_packets", "tx_bytes", "tx_packets", "memory_bytes"),
    "links": ("bytes", "packets", "dropped", "overlimits", "backlog_bytes", "backlog_packets"),
    "transfers": ("bytes", "packets", "lost", "retransmits", "rtt_ns"),
}
OF = {"nodes": ("node",), "links": ("link", "direction", "class"), "transfers": ("flow", "endpoint", "leg")}
MOST_BPS = 1e13  # bytes/s between two samples; the memory of today's largest machines is slower
BESIDE_NS = 86_400 * 10**9  # ns; a lab may serve for some time after its scenario
REMEDY = "figures made of these are wrong: see the raw file (docs/contracts/run-directory.md), repeat the run"


def judge(run_dir: Path, manifest: Manifest) -> list[Warned]:
    """Returns a warning, which makes the run suspect, for each of the tables nodes, links and transfers that
    has impossible values; an absent table gives none.
    """
    found = []
    for name, counters in COUNTERS.items():
        path = run_dir / f"{name}.parquet"
        if path.exists():
            said = "; ".join(_said(pl.read_parquet(path), counters, OF[name], manifest))
            if said:
                found.append(Warned(f"{TRUST}samples", f"{name}.parquet: {said}", REMEDY, suspect=True))
    return found


def _said(
    table: pl.DataFrame, counters: tuple[str, ...], of: tuple[str, ...], manifest: Manifest
) -> Iterator[str]:
    for counter in counters:
        below = table.filter(pl.col(counter) < 0)
        if below.height:
            yield f"{counter} is below zero in {below.height} samples, first of {_first(below, of)}"
    for counter in (one for one in counters if one.endswith("bytes")):
        steps = table.sort("t_ns").with_columns(
            grown=pl.col(counter).cast(pl.Float64).diff().over(of),
            passed=pl.col("t_ns").diff().over(of) / 1e9,
        )
        fast = steps.filter(pl.col("grown").abs() > MOST_BPS * pl.max_horizontal("passed", 1.0))
        if fast.height:
            yield f"{counter} jumps {fast.height} times by more than any machine moves, of {_first(fast, of)}"
    if phases := manifest.phases:
        begin, end = min(b for b, _ in phases.values()), max(e for _, e in phases.values())
        inside = pl.col("t_ns").is_between(begin - BESIDE_NS, end + BESIDE_NS)
        if (beside := table.filter(~inside)).height:
            yield f"{beside.height} samples are a day or more before or after the scenario"


def _first(rows: pl.DataFrame, of: tuple[str, ...]) -> str:
    return " ".join(str(value) for value in rows.select(of).row(0) if value is not None)
