"""Turns a run of an atlas campaign into a row of the data set: deliveries, times and bytes sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from reports.atlas.axes import DEADLINES_S
from reports.rundir import Run, RunDirectoryError, read_run

FIELD, CENTRE = "at-field", "at-centre"  # capture points of topologies/atlas/*.yaml
PREFIX = "atlas-"  # prefix of the names of topologies/atlas/*.yaml; the rest is the model
QUANTILES = (0.1, 0.5, 0.9, 0.99, 1.0)
REPAIR = "RDATA"  # PGM's packet type for data sent again (RFC 3208)
SECOND = 1e9
_UNITS = {
    "%": 0.01, "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3,
    "s": 1.0, "min": 60.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 1048576.0,
}  # fmt: skip


def row_of(run_dir: Path, levels: dict[str, Any], point: int, wall_s: float | None) -> dict[str, Any]:
    """Returns the data set's row for a complete run. `levels` are the factor levels of its cell in
    cells.jsonl, `point` is the number of its design point, `wall_s` the run's duration in wall-clock seconds.

    RunDirectoryError if the run has no messages, or not the two captures that the atlas needs.
    """
    run = read_run(run_dir)
    messages = run.table("messages")
    if messages is None or not {FIELD, CENTRE} <= run.captures.keys():
        raise RunDirectoryError(
            f"{run_dir}: holds no messages, or no captures {FIELD} and {CENTRE}; the atlas reads runs of "
            "topologies/atlas/*.yaml"
        )
    asked = run.manifest.parameters
    receivers, updates = int(asked["receivers"]), int(messages["seq"].n_unique())
    begin_ns = int(messages.select(pl.col("scheduled_ns").min()).item())
    return {
        "model": model(str(levels["topology"]), levels, asked),
        "point": point,
        "seed": int(run.seed),
        "loss": _number(asked["loss"]),
        "rate_bps": _number(asked["rate"]),
        "delay_s": _number(asked["delay"]),
        "receivers": receivers,
        "size_bytes": int(_number(asked["size"])),
        "duplex": str(asked["duplex"]),
        "updates": updates,
        **_delivery(messages, updates * receivers),
        **_wire(run, begin_ns, updates * receivers),
        "lab_s": _lab_s(run),
        "patience_s": _patience_s(run, messages),
        "wall_s": wall_s,
        "suspect": run.manifest.suspect,
        "warnings": sorted({str(w["code"]) for w in run.manifest.warnings}),
        "code": str(run.manifest.inputs.get("code", "")),
        "agent": str(run.manifest.inputs.get("agent", "")),
        "kernel": run.manifest.kernel["release"],
        "version": str(run.manifest.versions["vnet"]),
        "time": run.manifest.time or "real",
        "parameters": json.dumps(asked, sort_keys=True),
    }


def model(topology: str, levels: dict[str, Any], asked: dict[str, Any]) -> str:
    """Returns the name of the interaction model: the topology's name without "atlas-", then name and value of
    each factor in `levels` that does not describe the network. `asked` has the parameters of the run.
    """
    place = {"topology", "loss", "rate", "delay", "receivers", "size", "duplex"}
    more = [f"{name} {asked[name]}" for name in levels if name not in place]
    return " ".join([topology.removeprefix(PREFIX), *more])


def _number(value: Any) -> float:
    """Returns the value of a parameter in the manifest as a number in the data set's unit: share, bit/s, s or
    bytes. A number without a unit stays as it is.
    """
    number, _, unit = str(value).strip().partition(" ")
    return float(number) * (_UNITS[unit.strip()] if unit else 1.0)


def _delivery(messages: pl.DataFrame, owed: int) -> dict[str, Any]:
    """Returns the columns about deliveries: the numbers of delivered, confirmed and duplicated updates among
    `owed` (updates x receivers), their shares by each deadline, and quantiles of latency and round trip in s.

    Receivers that were absent or unreachable are part of `owed`. Confirmations are None if the model has no
    requests; quantiles of no values are None.
    """
    latency = messages["latency_ns"].drop_nulls().cast(pl.Float64) / SECOND
    confirms = bool((messages["pattern"] == "request").any())
    trip = messages["round_trip_ns"].drop_nulls().cast(pl.Float64) / SECOND
    copies = messages["copies"].fill_null(0)
    found: dict[str, Any] = {
        "owed": owed,
        "delivered": len(latency),
        "confirmed": len(trip) if confirms else None,
        "duplicated": int((copies > 1).sum()),
        "hit_patience": (len(trip) if confirms else len(latency)) < owed,
        "delivered_within": [float((latency <= d).sum()) / owed for d in DEADLINES_S],
        "confirmed_within": [float((trip <= d).sum()) / owed for d in DEADLINES_S] if confirms else None,
    }
    for name, values in (("latency", latency), ("round_trip", trip)):
        for share in QUANTILES:
            found[f"{name}_p{100 * share:g}_s"] = values.quantile(share, "higher") if len(values) else None
    return found


def _wire(run: Run, begin_ns: int, owed: int) -> dict[str, Any]:
    """Returns the columns about the captures: the bytes of both sides across the link before the first update
    at `begin_ns` (setup) and after it; packets and retransmissions after it; bytes per update and receiver;
    and packets that the captures dropped.
    """
    cards = [card for node in run.plan.nodes for card in node.interfaces]
    here = {address: card.segment for card in cards for address in card.addresses}
    total_bytes = setup_bytes = packets = again = 0
    for point, segment in ((CENTRE, "centre"), (FIELD, "field")):
        ours = [address for address, of in here.items() if of == segment]
        rows = pl.read_parquet(run.captures[point])
        # A frame to another node of the same side does not pass the link; multicasts and broadcasts do.
        crossed = rows.filter(
            pl.col("src").is_in(ours).fill_null(False) & ~pl.col("dst").is_in(ours).fill_null(False)
        )
        after = crossed.filter(pl.col("t_ns") >= begin_ns)
        total_bytes += int(after["wire_bytes"].sum())
        setup_bytes += int(crossed["wire_bytes"].sum()) - int(after["wire_bytes"].sum())
        packets += after.height
        repaired = after["app_types"].list.contains(REPAIR).fill_null(False)
        again += int((after["retransmission"].fill_null(False) | repaired).sum())
    return {
        "wire_bytes": total_bytes,
        "setup_bytes": setup_bytes,
        "wire_packets": packets,
        "retransmissions": again,
        "bytes_per_update": total_bytes / owed,
        "captures_dropped": sum(
            int(c["dropped_kernel"]) + int(c["dropped_interface"]) for c in run.manifest.captures.values()
        ),
    }


def _patience_s(run: Run, messages: pl.DataFrame) -> float:
    """Returns the seconds from the scheduled time of the last update to the planned end of the drain."""
    last_ns = int(messages.select(pl.col("scheduled_ns").max()).item())
    planned_ns = run.plan.ramp_ns + run.plan.hold_ns + run.plan.drain_ns
    return (int(run.manifest.t0_ns or 0) + planned_ns - last_ns) / SECOND


def _lab_s(run: Run) -> float:
    """Returns the seconds from the start of the ramp to the end of the drain, in lab time."""
    phases = run.manifest.phases
    return float(phases["drain"][1] - phases["ramp"][0]) / SECOND
