"""Makes tables of the RFC 2544 trials of a path: offered and delivered frames, latencies, and results."""

from __future__ import annotations

from typing import Any

import polars as pl

from capture.rawfile import DECIMAL, INTEGER, NAME, OPTIONAL
from contract.plan import Plan

KIND = "frames"  # kind of the software that carries out the trials
WORD = "[a-z-]+"
TRIALS = (
    {"trial": INTEGER, "t_ns": INTEGER, "stream": NAME, "test": WORD, "size": INTEGER, "repetition": INTEGER}
    | {"rate_fps": DECIMAL}
    | dict.fromkeys(
        ("count", "sent", "refused", "late_ns", "tx_first_ns", "tx_last_ns", "received", "duplicates"),
        INTEGER,
    )
    | dict.fromkeys(("reordered", "corrupted", "foreign", "early", "ring_dropped"), INTEGER)
    | dict.fromkeys(("rx_first_ns", "rx_last_ns"), INTEGER)
    | dict.fromkeys(("tagged_ns", "latency_min_ns", "latency_mean_ns", "latency_max_ns"), OPTIONAL)
    | {"verdict": WORD}
)
LATENCIES = dict.fromkeys(("trial", "from_ns", "to_ns", "frames"), INTEGER)
FINDINGS = {
    "stream": NAME,
    "test": WORD,
    "size": INTEGER,
    "repetition": INTEGER,
    "value": DECIMAL,
    "unit": NAME,
    "limit": WORD,
    "top_fps": DECIMAL,
}


def planned(plan: Plan) -> bool:
    """Returns True if the plan has RFC 2544 trials: software of kind `frames`."""
    return any(s.kind == KIND for node in plan.nodes for s in node.software)


def streams(plan: Plan) -> dict[str, dict[str, Any]]:
    """Returns the settings of each stream of test frames, by its label NODE.SOFTWARE."""
    return {
        f"{node.name}.{software.name}": software.spec
        for node in plan.nodes
        for software in node.software
        if software.kind == KIND
    }


def one_clock(plan: Plan, stream: str) -> bool:
    """Returns True if neither sender nor receiver of the stream is a VM node, so that they share one kernel;
    otherwise each latency includes their clocks' offset.
    """
    kinds = {node.name: node.kind for node in plan.nodes}
    ends = {stream.split(".")[0], *(frames["to"] for name, frames in streams(plan).items() if name == stream)}
    return not any(kinds.get(node) == "vm" for node in ends)


def label(stream: str, size: int, count: int) -> str:
    """Returns a label such as "64 B", preceded by the stream unless `count`, the number of streams, is 1."""
    return f"{size} B" if count == 1 else f"{stream} {size} B"


def trials(raw: pl.DataFrame) -> pl.DataFrame:
    """Adds three columns to the trials: `lost` (sent frames, less received frames and those that the
    receiver's ring dropped; at least 0), and the measured rates offered_fps and delivered_fps.
    """
    lost = pl.col("sent") - pl.col("received") - pl.col("ring_dropped")
    return raw.with_columns(
        lost=lost.clip(0),
        offered_fps=_rate("sent", "tx"),
        delivered_fps=_rate("received", "rx"),
    )


def _rate(frames: str, side: str) -> pl.Expr:
    """Returns an expression for frames a second from the first frame to the last; null for fewer than two
    frames.
    """
    span_ns = pl.col(f"{side}_last_ns") - pl.col(f"{side}_first_ns")
    return pl.when((pl.col(frames) > 1) & (span_ns > 0)).then((pl.col(frames) - 1) * 1e9 / span_ns)
