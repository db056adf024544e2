"""Compares the last CPU and memory samples of nodes with the counters of their control groups
after the run.
"""

from __future__ import annotations

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.evidence import Evidence

CPU_SAMPLED = Rule(
    "cpu-sampled",
    "the CPU time of nodes in their last sample",
    "that of their control groups at the end",
    WRONG,
    singular=True,
)
MEMORY_SAMPLED = Rule(
    "memory-sampled", "the highest memory of nodes in a sample", "the highest memory of their control groups",
    WRONG, "at most", singular=True,
)  # fmt: skip
TIMES = 3  # after its last sample a node may be this many times as busy as in its busiest second
OTHER_NS = 30_000_000  # CPU time to end a node's load and to read its counters
SECOND = 1_000_000_000


def cpu_goes_on(e: Evidence) -> Found:
    """Checks that a node's CPU time at the end of the run is at least its CPU time in the last sample, and
    not far above it.

    The allowed growth is three times the rate of the busiest sample interval, for the seconds between the two
    and one second more, plus 30 ms in total.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    if e.processes is None or e.nodes is None:
        return Found(left_out=["the nodes' control groups were not read at the end"])
    ends = e.processes.select("node", "group_ns", end_ns="t_ns")
    before = e.nodes.join(ends, on="node").filter(pl.col("t_ns") <= pl.col("end_ns")).sort("node", "t_ns")
    last = before.with_columns(step=pl.col("cpu_ns").diff().over("node")).group_by("node").agg(
        pl.col("cpu_ns", "group_ns", "end_ns", "t_ns").last(), pl.col("step").max()
    )  # fmt: skip
    compared = []
    for node, sampled, group, end_ns, t_ns, step in last.sort("node").iter_rows():
        since = 1 + (end_ns - t_ns) / SECOND
        least = group - round(TIMES * (step or 0) * since) - OTHER_NS
        compared.append(Compared(node, group if least <= sampled <= group else sampled, group, "ns"))
    return Found(compared, [] if compared else ["no node has samples before the end"])


def memory_has_a_peak(e: Evidence) -> Found:
    """Checks that no memory sample exceeds the node's peak memory, for samples from before the peak
    was read.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    if e.peaks is None or e.nodes is None:
        return Found(left_out=["the kernel keeps no peak of memory"])
    ends = e.peaks.select("node", peak="memory_bytes", end_ns="t_ns")
    before = e.nodes.join(ends, on="node").filter(pl.col("t_ns") <= pl.col("end_ns"))
    most = before.group_by("node").agg(pl.col("memory_bytes").max(), pl.col("peak").first()).sort("node")
    compared = [Compared(node, sampled, peak, "bytes") for node, sampled, peak in most.iter_rows()]
    return Found(compared, [] if compared else ["no node has samples before the end"])
