"""Computes the frames of a replay from the tables of a finished run. The frames equal those that the lab
would have sent.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from contract import events, rundir
from contract import manifest as manifests
from contract.manifest import Manifest
from contract.plan import Plan
from orchestrator.cli.page import network
from orchestrator.cli.page.flows import COUNTED

STEP_NS = 10**9  # length of a frame: the interval of the counters
MOST_FRAMES = 60  # largest number of frames in one answer
Json = dict[str, Any]


class ReplayError(Exception):
    """Raised if a run cannot be replayed; the text gives the reason and a remedy."""


def about(run_dir: Path, unfolded: Container[str] = ()) -> Json:
    """Returns the data that a replay needs in addition to its frames: status, plan, network, warnings,
    events, captures.

    from_ns: time of the first sample. frames: number of frames. unfolded: groups to unfold in the drawing.
    Raises ReplayError if the run has no tables or cannot be read.
    """
    manifest, plan = _manifest(run_dir), _plan(run_dir)
    found, forward = network.planned(plan), network.routers(plan)
    shown = network.network(found, forward)
    if unfolded:
        shown["drawing"] = network.drawn(found, forward, unfolded)
    first, last = _span(run_dir)
    known = ("lab", "kernel", "driver", "state", "time", "seed", "t0_ns", "phases", "topology")
    return {
        "status": {"ready": True, "phase": manifest.state, **{k: getattr(manifest, k) for k in known}},
        "plan": network.timeline(plan),
        "network": shown,
        "warnings": manifest.warnings,
        "events": list(map(asdict, events.read(run_dir))),
        "captures": sorted(path.name for path in (run_dir / "pcap").glob("*.pcap*") if path.is_file()),
        "from_ns": first,
        "frames": max(0, (last - first) // STEP_NS),
    }


def frames(run_dir: Path, start: int, count: int) -> list[Json]:
    """Returns `count` frames from number `start` on; frame n covers the second from from_ns + n s on (see
    `about`). Raises ReplayError for a `start` that is negative or after the last frame, a `count` that is not
    from 1 to MOST_FRAMES, or unreadable tables.
    """
    if start < 0 or not 0 < count <= MOST_FRAMES:
        raise ReplayError(
            f"from {start}, count {count}: give from at least 0 and count from 1 to {MOST_FRAMES}"
        )
    wires = network.portless(network.planned(_plan(run_dir)))
    first, last = _span(run_dir)
    if start > (there := max(0, (last - first) // STEP_NS)):
        raise ReplayError(f"from {start}: the run has {there} frames")
    begin = first + start * STEP_NS
    nodes, links = _nodes(run_dir, begin, count), _links(run_dir, begin, count)
    flows, each = (_flows(run_dir, begin, count, by) for by in ("class", "name"))
    return [
        {
            "t_ns": begin + (n + 1) * STEP_NS, "links": links[n], "flows": flows[n], "each": each[n],
            "nodes": network.with_wires(nodes[n], links[n], wires),
        }
        for n in range(count)
    ]  # fmt: skip


def _plan(run_dir: Path) -> Plan:
    try:
        return rundir.read_plan(run_dir)
    except rundir.UnreadableError as error:
        raise ReplayError(f"{error}; replay it with the version of vnet that made it") from error


def _manifest(run_dir: Path) -> Manifest:
    try:
        return manifests.written(run_dir)
    except (OSError, ValueError) as error:
        raise ReplayError(f"{run_dir / manifests.NAME}: cannot be read: {error}") from error


def _table(run_dir: Path, name: str) -> pl.LazyFrame | None:
    path = run_dir / f"{name}.parquet"
    return pl.scan_parquet(path) if path.is_file() else None


def _collect(table: pl.LazyFrame, place: Path) -> pl.DataFrame:
    try:
        return table.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReplayError(f"{place}: its tables are of another version or damaged: {error}") from error


def _span(run_dir: Path) -> tuple[int, int]:
    table = _table(run_dir, "nodes")
    if table is None:
        raise ReplayError(
            f"{run_dir}: has no tables; a run has them once it is over and reduced (`vnet report`)"
        )
    row = _collect(table.select(first=pl.col("t_ns").min(), last=pl.col("t_ns").max()), run_dir).row(0)
    if row[0] is None:
        raise ReplayError(f"{run_dir}/nodes.parquet: is empty: nothing was sampled")
    return int(row[0]), int(row[1])


def _binned(table: pl.LazyFrame, time: str, begin: int, count: int) -> pl.LazyFrame:
    """Returns the rows of `count` frames whose `time` (a column in ns) is after `begin`. The column `frame`
    has the number of each row's frame.
    """
    after = pl.col(time) > begin
    until = pl.col(time) <= begin + count * STEP_NS
    return table.filter(after & until).with_columns(frame=(pl.col(time) - begin - 1) // STEP_NS)


def _nodes(run_dir: Path, begin: int, count: int) -> list[dict[str, dict[str, float]]]:
    found: list[dict[str, dict[str, float]]] = [{} for _ in range(count)]
    table = _table(run_dir, "nodes")
    if table is None:
        return found
    columns = _binned(table, "t_ns", begin, count).select(
        "frame", "node", "cpu_share", "memory_bytes", "rx_bps", "tx_bps"
    )
    for frame, node, cpu, memory, rx, tx in _collect(columns, run_dir).iter_rows():
        if cpu is not None:
            values = {"cpu": cpu, "memory_bytes": memory or 0, "rx_bps": rx or 0.0, "tx_bps": tx or 0.0}
            found[frame][node] = values
    return found


def _links(run_dir: Path, begin: int, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    table = _table(run_dir, "links")
    if table is None:
        return found
    # `dropped` and `packets` are totals; their differences are the counts of an interval.
    whole = table.filter(pl.col("class").is_null()).sort("t_ns").with_columns(
        lost=pl.col("dropped").diff().over("link", "direction").clip(0),
        sent=pl.col("packets").diff().over("link", "direction").clip(0),
    )  # fmt: skip
    columns = _binned(whole, "t_ns", begin, count).select(
        "frame", "link", "direction", "bps", "pps", "lost", "sent", "backlog_bytes"
    )
    for frame, link, direction, bps, pps, lost, sent, backlog in _collect(columns, run_dir).iter_rows():
        if bps is not None:
            came = (lost or 0) + (sent or 0)
            values = {"bps": bps, "pps": pps, "dropped": (lost or 0) / came if came else 0.0}
            found[frame].setdefault(link, {})[direction] = {**values, "backlog_bytes": backlog or 0}
    return found


def _flows(run_dir: Path, begin: int, count: int, by: str) -> list[dict[str, dict[str, Any]]]:
    """Returns for each frame the counts, latencies and rate of each class or flow (the column `by`).

    A message that never arrived counts as lost in the frame in which it was scheduled.
    """
    found: list[dict[str, dict[str, Any]]] = [{} for _ in range(count)]

    def of(frame: int, name: str) -> dict[str, Any]:
        return found[frame].setdefault(name, dict.fromkeys(COUNTED, 0))

    if (messages := _table(run_dir, "messages")) is not None:
        good = pl.col("outcome").cast(pl.String).is_in(["settled", "sent"])
        sent = _binned(messages, "scheduled_ns", begin, count)
        owed = sent.filter(good & pl.col("receiver").is_not_null())
        lost = owed.group_by("frame", by).agg(all=pl.len(), lost=pl.col("received_ns").is_null().sum())
        for frame, name, total, missing in _collect(lost, run_dir).iter_rows():
            of(frame, name).update(judged=total, lost=missing)
        counted = sent.unique(["flow", "seq"]).group_by("frame", by).agg(good=good.sum(), all=pl.len())
        for frame, name, right, total in _collect(counted, run_dir).iter_rows():
            of(frame, name).update(settled=right, unsettled=total - right)
        arrived = _binned(messages.drop_nulls("received_ns"), "received_ns", begin, count)
        latency = pl.col("latency_ns")
        seen = arrived.group_by("frame", by).agg(n=pl.len(), middle=latency.median(), most=latency.max())
        for frame, name, n, middle, most in _collect(seen, run_dir).iter_rows():
            known = {} if middle is None else {"latency_p50_ns": middle, "latency_max_ns": most}
            of(frame, name).update(received=n, **known)
    if (transfers := _table(run_dir, "transfers")) is not None:
        carried = _binned(transfers.filter(pl.col("leg") == 1), "t_ns", begin, count)
        rates = carried.group_by("frame", by).agg(bps=pl.col("bps").sum())
        for frame, name, bps in _collect(rates, run_dir).iter_rows():
            of(frame, name).update(bps=bps or 0.0)
    return found
